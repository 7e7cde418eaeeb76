"""JSON lines, an object per line: a block is the lines that begin within 8 MB, as in other text.

The names are those in the first block. Text such as 2020-01-31 stays text, though Arrow reads it as
a time.
"""

from __future__ import annotations

import io
from typing import Any, Dict, List, Sequence, Tuple

import pyarrow as pa
import pyarrow.json

from migrate.data.formats import text
from migrate.data.schema import Column
from parity.io.damage import Broken
from parity.io.formats.json_lines import refuse_deep
from parity.io.formats.text import MARK
from semisync.storage.sources import packing_of


def survey(path: str, size: int) -> Tuple[Any, List[int]]:
    """The Arrow schema of the first block, and the rows of each block."""
    start, rows = text.surveyed(path, size)
    data = start if packing_of(path) else text.block_bytes(path, size, 0)
    return _table(data.tobytes().removeprefix(MARK), path).schema, rows


def read(path: str, size: int, block: int, rows: int, wanted: Sequence[Column]) -> Dict[str, Any]:
    """The columns of a block of `rows` lines, as Arrow arrays; null where an object lacks one.

    Raises:
        Broken: a line is not one object.
    """
    data = text.block_bytes(path, size, block).tobytes()
    table = _table(data if block else data.removeprefix(MARK), path)
    if len(table) != rows:
        raise Broken(f"{path}: {rows} lines hold {len(table)} objects; each line is one object")
    absent = pa.nulls(rows)
    return {
        column.name: table[column.name] if column.name in table.column_names else absent
        for column in wanted
    }


def _table(data: bytes, path: str) -> Any:
    if not data.strip():
        return pa.table({})
    refuse_deep(data, path)
    table = _parsed(data, None)
    due = pa.schema([(one.name, _settled(one.type)) for one in table.schema])
    return table if due.equals(table.schema) else _parsed(data, due)


def _parsed(data: bytes, due: Any) -> Any:
    return pyarrow.json.read_json(
        io.BytesIO(data),
        # One chunk: Arrow refuses a line that is longer than one. Blocks are read in threads
        # already.
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pyarrow.json.ParseOptions(explicit_schema=due),
    )


def _settled(found: Any) -> Any:
    """The type with which to read a column for which Arrow guessed `found`."""
    if pa.types.is_list(found):
        return pa.list_(_settled(found.value_type))
    return pa.string() if pa.types.is_timestamp(found) else found
