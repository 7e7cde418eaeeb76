"""Checkpoints of tables by raw ids: Parquet, for any other number of processes too.

    FOLDER/TABLE.R-of-N.parquet    the rows of process R: id, count, last_step (int64), value and
                                   each slot by torch's name (lists of dim float32)
    FOLDER/tables.json             written last: a folder that has it is whole

1. Each process writes its rows in their order, a block of BLOCK_BYTES at a time, with a checksum
   for each page.
2. As many processes read their own files, and go on to the same bits. Another number reads all
   files, block by block, and each keeps the ids that are its own.
3. A failure in one process is raised in all.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Any, Dict, Iterator, List
from urllib.parse import quote

import numpy
import pyarrow
import pyarrow.parquet
import torch

from migrate.id_tables.embeddings import IdEmbeddings
from migrate.id_tables.store import Store, refuse_others
from parity.io.damage import explained
from parity.io.formats import chosen
from parity.io.formats.parquet import Parquet
from semisync.common import json_text
from semisync.common.errors import BadInput, SemisyncError, UsageError
from semisync.common.files import replacing, write_json

SCHEMA = "semisync/id-tables/1"
WHOLE = "tables.json"
BLOCK_BYTES = 32 << 20
_COUNTED = ("id", "count", "last_step")


def save(tables: IdEmbeddings, folder: str) -> None:
    """Writes all tables; every process calls it.

    Args:
        tables: the tables to write.
        folder: the folder to make.

    Raises:
        UsageError: `folder` has a checkpoint.
        SemisyncError: it cannot be written.

    Examples:
        >>> import os
        >>> from migrate.id_tables import IdEmbeddings, IdTable, save
        >>> tables = IdEmbeddings([IdTable("user", 2, ["user"])])
        >>> save(tables, "saved")
        >>> sorted(os.listdir("saved"))
        ['tables.json', 'user.0-of-1.parquet']
    """
    processes = tables.processes
    tables.agree()
    path = os.path.join(folder, WHOLE)
    with processes.together():
        if os.path.exists(path):
            raise UsageError(f"{folder} has a checkpoint; name a folder without one")
    described = {}
    with processes.together(), _writing(folder):
        os.makedirs(folder, exist_ok=True)
        for name, store in tables.stores.items():
            _write(store, os.path.join(folder, _file(name, processes.rank, processes.ranks)))
    for name, store in tables.stores.items():
        counts = [store.count if rank == processes.rank else 0 for rank in range(processes.ranks)]
        described[name] = {**store.described(), "rows": processes.total(counts)}  # of each process
    with processes.together(), _writing(folder):
        if processes.rank == 0:
            write_json(path, {"schema": SCHEMA, "ranks": processes.ranks, "tables": described})


def load(tables: IdEmbeddings, folder: str) -> None:
    """Replaces the tables' rows by those of a checkpoint; every process calls it.

    Make the optimizers first; a table without one takes vectors alone.

    Args:
        tables: the tables to fill.
        folder: the folder that `save` wrote.

    Raises:
        UsageError: tables or slots differ from those of the checkpoint.
        BadInput: the checkpoint is missing or damaged.

    Examples:
        >>> from migrate.id_tables import IdEmbeddings, IdTable, load, save
        >>> from migrate.torchrec.optimizers import Adagrad
        >>> first, second = (IdEmbeddings([IdTable("user", 2, ["user"], None)]) for _ in range(2))
        >>> optimizers = [one.optimizer(Adagrad, lr=0.1) for one in (first, second)]
        >>> vectors = first({"user": torch.tensor([2**40, -7])})
        >>> save(first, "saved_1")
        >>> load(second, "saved_1")
        >>> second.rows()
        {'user': 2}
    """
    processes = tables.processes
    tables.agree()
    tables.forget()
    described: Dict[str, Any] = {}
    with processes.together():
        ranks, described = _description(folder)
        refuse_others(folder, described, tables.stores)
        for name, store in tables.stores.items():
            known = described[name]
            store.clear()
            store.seed, store.step = known["seed"], known["step"]
            own = ranks == processes.ranks
            for rank in [processes.rank] if own else range(ranks):
                path = os.path.join(folder, _file(name, rank, ranks))
                for columns in _read(path, store, known["rows"][rank]):
                    _add(store, columns, processes.own(columns["id"]), path if own else None)
            if store.optimizer is None:
                store.left_out = known["slots"]
            else:
                store.updates = known["updates"]
    for name, rows in tables.rows().items():
        if rows != sum(described[name]["rows"]):
            raise BadInput(f"{folder}: table {name!r} has rows that belong to no process")


def own_files(tables: IdEmbeddings) -> List[str]:
    """The names of the files in a checkpoint's folder that this process writes."""
    rank, ranks = tables.processes.rank, tables.processes.ranks
    return [*(_file(name, rank, ranks) for name in tables.stores), *([] if rank else [WHOLE])]


def _file(name: str, rank: int, ranks: int) -> str:
    return f"{quote(name, safe='')}.{rank}-of-{ranks}.parquet"


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SemisyncError(f"{folder}: the checkpoint was not written: {error}") from error


def _write(store: Store, path: str) -> None:
    tensors = store.columns()
    vector = pyarrow.list_(pyarrow.float32(), store.dim)
    fields = [
        *((name, pyarrow.int64()) for name in _COUNTED),
        *((name, vector) for name in tensors),
    ]
    schema = pyarrow.schema([pyarrow.field(name, kind, nullable=False) for name, kind in fields])
    step = max(1, BLOCK_BYTES // (24 + 4 * store.dim * len(tensors)))
    with replacing(path) as beside, open(beside, "wb") as file:
        with pyarrow.parquet.ParquetWriter(
            file,
            schema,
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        ) as writer:
            for first in range(0, store.count, step):
                rows = slice(first, first + step)
                counted = (store.ids, store.freqs, store.versions)
                columns = [pyarrow.array(column[rows]) for column in counted]
                for tensor in tensors.values():
                    flat = pyarrow.array(tensor[rows].reshape(-1).numpy())
                    columns.append(pyarrow.FixedSizeListArray.from_arrays(flat, type=vector))
                writer.write_table(pyarrow.table(columns, schema=schema))
        # `replacing` does not sync: after a power failure the moved file might be empty.
        file.flush()
        os.fsync(file.fileno())


def _description(folder: str) -> Any:
    """(processes, tables) of tables.json; raises BadInput unless it is one."""
    path = os.path.join(folder, WHOLE)
    try:
        found = json_text.read(path)
        if found["schema"] != SCHEMA:
            raise ValueError(f"its schema is {found['schema']!r}, expected {SCHEMA!r}")
        for table in found["tables"].values():
            numbers = [table["dim"], table["seed"], table["step"], table["updates"], *table["rows"]]
            whole = all(isinstance(number, int) for number in numbers)
            if not whole or len(table["rows"]) != found["ranks"]:
                raise ValueError("it lacks the numbers of its tables")
            # Raises a TypeError if it is not a list of names.
            sorted(table["slots"])
        return found["ranks"], found["tables"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{path} is not a whole checkpoint of tables by raw ids: {error}") from error


def _read(path: str, store: Store, rows: int) -> Iterator[Dict[str, numpy.ndarray]]:
    with explained(path):
        file = Parquet(path)
        if file.rows != rows:
            raise BadInput(f"{path} has {file.rows} rows, but {WHOLE} tells of {rows}")
        names = chosen(path, file.schema.names, [*_COUNTED, *store.columns()])
        for block in range(len(file.block_rows())):
            table = file.block(block, names)
            yield {name: _numbers(path, name, table[name], store.dim) for name in names}


def _numbers(path: str, name: str, column: Any, dim: int) -> numpy.ndarray:
    """int64 [rows], or float32 [rows, dim]."""
    kind = pyarrow.int64() if name in _COUNTED else pyarrow.list_(pyarrow.float32(), dim)
    if column.type != kind or column.null_count:
        raise BadInput(
            f"{path}: the column {name!r} is {column.type}, expected {kind} without null"
        )
    whole = column.combine_chunks()
    if name in _COUNTED:
        return numpy.ascontiguousarray(whole.to_numpy())
    flat: numpy.ndarray = whole.flatten().to_numpy()
    return flat.reshape(-1, dim)


def _add(store: Store, columns: Dict[str, numpy.ndarray], own: numpy.ndarray, whole: Any) -> None:
    """Adds the rows of a file; `whole` is the file, if they must all be this process's."""
    if whole is not None and not own.all():
        raise BadInput(f"{whole} has ids of other processes; the checkpoint is damaged")
    if not own.all():
        columns = {name: column[own] for name, column in columns.items()}
    first = store.add(numpy.ascontiguousarray(columns["id"]))
    store.freqs[first:], store.versions[first:] = columns["count"], columns["last_step"]
    tensors: Dict[str, torch.Tensor] = store.columns()
    for name, tensor in tensors.items():
        tensor[first:] = torch.from_numpy(columns[name].copy())
