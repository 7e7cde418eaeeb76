"""Columns that stand in the names of folders, as Hive and Spark write: day=2024-01-31/part-0.orc.

1. A value is the text after =, with %xx decoded; __HIVE_DEFAULT_PARTITION__ is a missing value.
2. The values of a column are int64 where every file's is a whole number without leading zeros, and
   text otherwise, so that 01 is not 1.
3. A column that a file has itself is read from the file, and must not contradict its path.
"""

import os
import re
from typing import Any, Dict, List, Mapping, Optional, Sequence
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from semisync.common.errors import BadInput

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")  # of 18 digits at most, which int64 holds


def partitions_of(files: Sequence[str]) -> Dict[str, Dict[str, pa.Scalar]]:
    """By file, the columns in its path and their values, of the same type in every file."""
    texts = {file: in_path(file) for file in files}
    names = dict.fromkeys(name for values in texts.values() for name in values)
    kinds = {name: _kind([values.get(name) for values in texts.values()]) for name in names}
    return {
        file: {name: pa.scalar(text).cast(kinds[name]) for name, text in values.items()}
        for file, values in texts.items()
    }


def completed(
    table: pa.Table, wanted: Sequence[str], partitions: Mapping[str, pa.Scalar]
) -> pa.Table:
    """The wanted columns in their order, those that the table lacks from its file's path."""
    rows, columns = table.num_rows, {}
    for name in wanted:
        inside = name in table.column_names
        columns[name] = table[name] if inside else pa.repeat(partitions[name], rows)
    return pa.table(columns)


def refuse_contradiction(file: str, name: str, values: Any) -> None:
    """Raises BadInput if a folder such as day=2024-01-31 contradicts the file's own column.

    Args:
        values: of the column, a pyarrow.Array or ChunkedArray; lists of one value count as values.
    """
    said = in_path(file)
    if name in said and not _all_are(said[name], values):
        raise BadInput(
            f"{file}: column {name!r} has other values than its folder, which says "
            f"{said[name]!r}; rename the folder or the column"
        )


def _all_are(text: Optional[str], values: Any) -> bool:
    try:
        kind = values.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            if not pc.all(pc.equal(pc.list_value_length(values), 1), min_count=0).as_py():
                return False
            values = pc.list_flatten(values)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if text is None or values.null_count:
            return text is None and values.null_count == len(values)
        same = pc.equal(values, pa.scalar(text).cast(values.type))
        return bool(pc.all(same, min_count=0).as_py())
    except pa.ArrowException:  # not of a type that text stands for
        return False


def in_path(file: str) -> Dict[str, Optional[str]]:
    """The columns in a file's path and their values as text, None for a missing one."""
    values: Dict[str, Optional[str]] = {}
    for folder in os.path.dirname(file).split(os.sep):
        name, equals, value = folder.partition("=")
        if name and equals:
            values[unquote(name)] = None if value == _MISSING else unquote(value)
    return values


def _kind(texts: List[Optional[str]]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    whole = known and all(map(_WHOLE.fullmatch, known))
    return pa.int64() if whole else pa.string()
