"""Tables in memory, of any library that hands them over by Arrow's stream of record batches.

pandas, polars, pyarrow, DuckDB's relations and others have `__arrow_c_stream__`, so that none of
them is imported here. A mapping of columns is a table, too.
"""

from typing import Any, Collection, Mapping, NamedTuple, Sequence, Tuple

import pyarrow as pa

from semisync.common.errors import BadInput


class Frame(NamedTuple):
    """A table, and its name in messages."""

    name: str
    held: Tuple[str, ...]  # all columns that it has
    table: pa.Table  # those that were taken

    def __str__(self) -> str:
        return self.name

    def chosen(self, wanted: Sequence[str], optional: Collection[str] = ()) -> pa.Table:
        """The wanted columns, those of `optional` where there are any.

        Raises:
            BadInput: a column that is not there, or there twice.
        """
        names = list(dict.fromkeys(wanted))
        for name in names:
            count = self.held.count(name)
            if count > 1:
                raise BadInput(f"{self} has {count} columns named {name!r}; rename them")
            if not count and name not in optional:
                raise BadInput(f"{self} has no column {name!r}; it has: {', '.join(self.held)}")
        return self.table.select([name for name in names if name in self.table.column_names])


def to_frame(value: Any, name: str, wanted: Collection[str], every: bool = False) -> Frame:
    """A table as Arrow's.

    Args:
        name: in messages.
        wanted: the columns that are needed.
        every: take the others as well, where they are of one type each.

    Raises:
        BadInput: it is no table, or a column has values of several types.
    """
    if not (hasattr(value, "__arrow_c_stream__") or isinstance(value, Mapping)):
        raise BadInput(
            f"{name} is {type(value).__name__}, not a table: pandas, polars, pyarrow, a DuckDB "
            "relation or a mapping of columns is expected"
        )
    if hasattr(value, "iloc"):
        held = tuple(map(str, value.columns))
        return Frame(name, held, _of_pandas(value, name, wanted, every))
    try:
        if isinstance(value, Mapping):
            taken = {key: value[key] for key in value if every or key in wanted}
            return Frame(name, tuple(map(str, value)), pa.table(taken))
        reader = pa.RecordBatchReader.from_stream(value)
        names = reader.schema.names
        places = [place for place, key in enumerate(names) if every or key in wanted]
        schema = pa.schema([reader.schema.field(place) for place in places])
        table = pa.Table.from_batches([one.select(places) for one in reader], schema)
        return Frame(name, tuple(names), table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise BadInput(f"{name} is no table of columns: {error}") from error


def _of_pandas(value: Any, name: str, wanted: Collection[str], every: bool) -> pa.Table:
    """Column by column, as one that nobody asks for may hold anything."""
    columns = []
    for place, key in enumerate(value.columns):
        if not every and key not in wanted:
            continue
        try:
            columns.append((str(key), pa.Array.from_pandas(value.iloc[:, place])))
        except (pa.ArrowException, TypeError, ValueError) as error:
            if key in wanted:
                raise BadInput(f"{name}: column {key!r} is not of one type: {error}") from error
    return pa.Table.from_arrays([held for _, held in columns], [key for key, _ in columns])
