"""One column of a table: its distinct values, and whether they are ids or numbers.

Everything costly is done once a distinct value, not once a row. The typing rule:

    Parquet      float and decimal columns are numbers; integers, booleans and text are ids
    delimited    a column whose values are all numbers, some of them not whole, holds numbers; all
                 others hold ids. Empty, NA, N/A, NaN, null, none, \\N and ? are missing numbers.

so that 17 in a delimited file and 17 in a Parquet file are the same id. Where 99% of the rows of a
delimited column are numbers, not all whole, the rest are taken for errors, not for ids.
"""

import re
from typing import Any, List, NamedTuple, Optional

import numpy as np

from semisync.common.errors import BadInput
from semisync.demo.data.readers.rescan import shown
from semisync.demo.data.readers.source import Where

_MISSING = {"", "na", "n/a", "nan", "null", "none", "\\n", "?"}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.I)
_MOSTLY = 0.99


class Column(NamedTuple):
    """A column as its distinct values and, for each row, which of them it has.

    Attributes:
        name: of the column.
        codes: int64 [rows], indices into the distinct values.
        texts: the distinct values as text, "" where missing; empty for a column of numbers. Some
            may not occur.
        numbers: float64 [distinct], NaN where missing, or None for a column of ids.
    """

    name: str
    codes: np.ndarray
    texts: List[str]
    numbers: Optional[np.ndarray] = None

    def first_row(self, code: int) -> int:
        return int(np.argmax(self.codes == code))


def column_of(table: Any, name: str, where: Where) -> Column:
    """Takes a column out of a pyarrow.Table.

    Raises: BadInput for a type that no rule covers (`is_readable`), such as a list.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    chunked = table[name]
    kind = chunked.type.value_type if pa.types.is_dictionary(chunked.type) else chunked.type
    if pa.types.is_dictionary(chunked.type) and not pa.types.is_string(kind):
        chunked = chunked.cast(kind)
    if pa.types.is_null(kind):
        kind, chunked = pa.string(), chunked.cast(pa.string())
    if not is_readable(kind):
        raise BadInput(
            f"{where.whole}: column {name!r} holds {kind}, expected text, numbers or booleans"
        )
    is_number = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if is_number:
        chunked = chunked.cast(pa.float64())
    if not pa.types.is_dictionary(chunked.type):
        chunked = pc.dictionary_encode(chunked)
    encoded = chunked.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows at all, or rows beyond one chunk's reach
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else None
    if encoded is None:
        return Column(name, np.zeros(0, np.int64), [])
    values = encoded.dictionary
    codes = pc.fill_null(encoded.indices.cast(pa.int64()), len(values)).to_numpy()
    if is_number:
        numbers = np.append(values.fill_null(np.nan).to_numpy(zero_copy_only=False), np.nan)
        return Column(name, codes, [], numbers)
    return Column(name, codes, [*values.cast(pa.string()).fill_null("").to_pylist(), ""])


def is_readable(kind: Any) -> bool:
    """Whether a column of this pyarrow type can be a field: not a list, a time or a picture."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        types.is_integer,
        types.is_floating,
        types.is_decimal,
        types.is_boolean,
        types.is_string,
        types.is_large_string,
        types.is_null,
    )
    return any(test(kind) for test in tests)


def as_numbers(column: Column, where: Where) -> Column:
    """The typing rule for delimited files: `column` with its numbers, if it holds such.

    Raises: BadInput, naming the line of a value that is not a number among almost only numbers.
    """
    present = [code for code, text in enumerate(column.texts) if text.lower() not in _MISSING]
    stray = [code for code in present if not _NUMBER.fullmatch(column.texts[code])]
    if len(stray) == len(present):
        return column
    fractional = any(
        _NUMBER.fullmatch(column.texts[code]) and not _WHOLE.fullmatch(column.texts[code])
        for code in present
    )
    if not fractional:
        return column
    if stray:
        counts = np.bincount(column.codes, minlength=len(column.texts))
        if counts[stray].sum() > (1 - _MOSTLY) * counts[present].sum():
            return column
        code = min(stray, key=column.first_row)
        raise BadInput(
            f"{where.row(column.first_row(code))}: column {column.name!r} holds "
            f"{shown(column.texts[code])}, expected a number as in {_MOSTLY:.0%} of the rows; mend "
            "it, or declare the column categorical"
        )
    numbers = np.full(len(column.texts), np.nan)
    numbers[present] = [float(column.texts[code]) for code in present]
    return column._replace(texts=[], numbers=numbers)


def labels_of(column: Column, where: Where) -> np.ndarray:
    """The label column as float32 [rows], 0 or 1.

    Raises: BadInput, naming the first row whose label is neither.
    """
    if column.numbers is not None:
        values = column.numbers
    else:
        known = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}
        values = np.array([known.get(text.lower(), np.nan) for text in column.texts])
    labels = values[column.codes] if len(column.codes) else np.zeros(0)
    wrong = ~np.isin(labels, (0, 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        code = int(column.codes[row])
        found = column.texts[code] if column.numbers is None else str(column.numbers[code])
        raise BadInput(
            f"{where.row(row)}: column {column.name!r} holds {shown(found)}, expected 0 or 1"
        )
    return labels.astype(np.float32)
