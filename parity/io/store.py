"""Tables of checked rows in a temporary DuckDB database: joined and sorted beyond memory.

DuckDB sees Arrow tables alone, whose values and types parity's own readers have checked; it reads
no file and guesses no type. Its memory is bounded, and any excess is spilled to a folder of its
own under TMPDIR, which is removed at the end.
"""

import contextlib
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Callable, Dict, Iterator, List

import pyarrow as pa

from parity.inputs.checks import Column
from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.common.sentences import words_of

BATCH = 1 << 19  # rows that a query yields at a time
_MEMORY = "1GB"
_THREADS = 4


class Store:
    """Tables by name. As a context, it removes its files at the end."""

    def __init__(self) -> None:
        with extra("report", "to join files and to group more rows than --memory holds"):
            import duckdb
        self._failures = (duckdb.IOException, duckdb.OutOfMemoryException)
        self._folder = tempfile.TemporaryDirectory(prefix="parity-")
        self._schemas: Dict[str, pa.Schema] = {}
        self._thread = ThreadPoolExecutor(1)
        self._database: Any = duckdb.connect(
            os.path.join(self._folder.name, "rows.duckdb"),
            config={
                "memory_limit": _MEMORY,
                "threads": min(_THREADS, os.cpu_count() or 1),
                "temp_directory": self._folder.name,
                "preserve_insertion_order": False,  # which takes memory; rows carry their numbers
                "python_enable_replacements": False,  # a table's name never means a Python variable
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            },
        )

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        idle = self._thread.submit(int)
        while not idle.done():  # a query that a Ctrl-C left, or that is about to begin
            self._database.interrupt()
            wait([idle], timeout=0.1)
        self._thread.shutdown()
        with contextlib.suppress(*self._failures):  # the disk is full, as was said already
            self._database.close()
        self._folder.cleanup()

    def add(self, name: str, rows: pa.Table) -> None:
        """Appends rows to the table of that name.

        Raises:
            BadInput: the disk is full, or columns of another type than before.
        """
        schema = self._schemas.get(name)
        try:
            rows = rows if schema is None else rows.cast(schema)
        except (pa.ArrowException, ValueError) as error:
            raise BadInput(f"the files do not have the same columns and types: {error}") from error
        self._schemas[name] = rows.schema
        self._database.register("arrived", rows)
        start = f"CREATE TABLE {name} AS" if schema is None else f"INSERT INTO {name}"
        self._run(f"{start} SELECT * FROM arrived")
        self._database.unregister("arrived")

    def columns(self, name: str) -> List[str]:
        """The names of the columns of a table to which rows were added."""
        return list(self._schemas[name].names)

    def one_row(self, query: str) -> Any:
        """The only row of a query's result, as a tuple."""
        (row,) = self._run(query)
        return row

    def tables(self, query: str) -> Iterator[pa.Table]:
        """The rows of a query, in tables of at most BATCH rows."""
        batches = self._beside(lambda: self._database.sql(query).to_arrow_reader(BATCH))
        for batch in iter(lambda: self._beside(lambda: next(batches, None)), None):
            yield pa.Table.from_batches([batch])

    def _run(self, query: str) -> Any:
        return self._beside(lambda: self._database.execute(query).fetchall())

    def _beside(self, work: Callable[[], Any]) -> Any:
        """The result of `work`, run in its own thread.

        DuckDB in the main thread sees a Ctrl-C between its tasks alone, and one may take minutes.
        """
        with self._explained():
            done = self._thread.submit(work)
            while not done.done():
                wait([done], timeout=0.5)  # Python may miss a Ctrl-C that comes as a wait begins
            return done.result()

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise BadInput(
                f"temporary files cannot be written to {self._folder.name}: {words_of(error)}; "
                "set TMPDIR to a folder with more room"
            ) from error


def storable(names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Names (parity.io.columns.to_names) in a type that DuckDB compares as Arrow does."""
    kind = names.type
    if pa.types.is_integer(kind) or pa.types.is_large_string(kind):
        return names
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return names.cast(pa.large_binary() if binary else pa.large_string())


def check_storable(names: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """The names themselves; refuses a type that DuckDB does not give back as it was."""
    kind = names.type
    whole = pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal128(kind)
    floating = pa.types.is_float32(kind) or pa.types.is_float64(kind)
    if not (whole or floating or pa.types.is_large_string(kind)):
        raise BadInput(
            f"{column} holds {kind}, which cannot divide joined rows beyond memory; write it as "
            "text or as whole numbers, or raise --memory"
        )
    return names
