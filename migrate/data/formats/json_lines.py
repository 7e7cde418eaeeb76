"""JSON lines, an object per line: a block is the lines that begin within 8 MB, as of other text.

The names are those in the first block. Arrow takes text such as 2020-01-31 for a time, and a list
that is always empty for one of nothing; both are read as what their columns hold.
"""

from __future__ import annotations

import io
from typing import Any, Dict, List, Optional, Sequence, Tuple

import pyarrow as pa
import pyarrow.json

from migrate.data.formats import text
from migrate.data.schema import Column
from migrate.storage.sources import packing_of
from parity.io.damage import Broken
from parity.io.formats.text import MARK

LISTS = ("ids", "numbers", "strings", "weighted")
_VALUES = {  # of a column in which a block has none, so that Arrow knows no type; else float32
    "ids": pa.int64(),
    "key": pa.string(),
    "string": pa.string(),
    "strings": pa.string(),
    "weighted": pa.struct([("id", pa.int64()), ("weight", pa.float32())]),
}


def survey(path: str, size: int) -> Tuple[Any, List[int]]:
    """The Arrow schema of the first block, and the rows of each block."""
    start, rows = text.surveyed(path, size)
    data = start if packing_of(path) else text.block_bytes(path, size, 0)
    return _table(data.tobytes().removeprefix(MARK), []).schema, rows


def read(path: str, size: int, block: int, rows: int, wanted: Sequence[Column]) -> Dict[str, Any]:
    """The columns of a block of `rows` lines, as Arrow arrays; null where an object lacks one.

    Raises: Broken where a line is not one object.
    """
    data = text.block_bytes(path, size, block).tobytes()
    table = _table(data if block else data.removeprefix(MARK), wanted)
    if len(table) != rows:
        raise Broken(f"{path}: {rows} lines hold {len(table)} objects; each line is one object")
    return {
        column.name: table[column.name]
        if column.name in table.column_names
        else absent(column, rows)
        for column in wanted
    }


def absent(column: Column, rows: int) -> Any:
    """The column where no row has it."""
    return pa.nulls(rows, _settled(pa.null(), column))


def _table(data: bytes, wanted: Sequence[Column]) -> Any:
    if not data.strip():
        return pa.table({})
    columns = {column.name: column for column in wanted}
    table = _parsed(data, None)
    due = pa.schema([(one.name, _settled(one.type, columns.get(one.name))) for one in table.schema])
    return table if due.equals(table.schema) else _parsed(data, due)


def _parsed(data: bytes, due: Any) -> Any:
    return pyarrow.json.read_json(
        io.BytesIO(data),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.json.ParseOptions(explicit_schema=due),
    )


def _settled(found: Any, column: Optional[Column]) -> Any:
    """The type to read a column as, of which Arrow guessed `found`."""
    if pa.types.is_null(found) and column and (column.kind in LISTS or column.width > 1):
        return pa.list_(_settled_value(found, column))
    return _settled_value(found, column)


def _settled_value(found: Any, column: Optional[Column]) -> Any:
    if pa.types.is_list(found):
        return pa.list_(_settled_value(found.value_type, column))
    if pa.types.is_timestamp(found):
        return pa.string()
    if pa.types.is_null(found) and column:
        return _VALUES.get(column.kind, pa.float32())
    return found
