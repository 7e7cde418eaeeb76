"""One column of a click log: its distinct values, and whether they are ids or numbers.

    Parquet      float and decimal columns are numbers; integers, booleans and text are ids
    text files   a column whose values are all numbers, some of them not whole, holds numbers; all
                 others hold ids. Empty, NA, N/A, NaN, null, none, \\N and ? are missing numbers.

so that 17 in a text file and 17 in a Parquet file are the same id. Where 99% of the rows of a text
file's column are numbers, not all whole, the rest are taken for errors, not for ids.

Numbers become buckets, each of which is an id. Criteo's counts, after the winners of its Kaggle
contest (Juan, Zhuang & Chin 2014, "3 Idiots"; github.com/ycjuan/kaggle-2014-criteo,
converters/common.py, gen_feats):

    v > 2  ->  the text of int(log(v)^2)        else  ->  "SP" followed by v

Any other number: at most 32 buckets of equal frequency, for which no value counts for more than a
32nd of the rows (else a column that is mostly 0 would be one bucket). The edges come from the
earliest half of the rows alone, so that held-out rows do not matter; a number with up to 32 values
there has one bucket per value. A missing number has a bucket of its own.
"""

import math
import re
from typing import Any, List, NamedTuple, Optional

import numpy as np

from semisync.common.errors import BadInput
from semisync.demo.data.data_file import Where, shown

BUCKETS = 32
_MISSING = {"", "na", "n/a", "nan", "null", "none", "\\n", "?"}  # in lower case
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.I)
_MOSTLY = 0.99
_LABELS = {"0": 0.0, "0.0": 0.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "true": 1.0}


class Column(NamedTuple):
    """A column as its distinct values and, for each row, which of them it has.

    Attributes:
        name: of the column.
        codes: int64 [rows], indices into the distinct values.
        texts: the distinct values as text, "" where missing; some may not occur.
        numbers: float64 [distinct], NaN where missing, or None for a column of ids.
    """

    name: str
    codes: np.ndarray
    texts: List[str]
    numbers: Optional[np.ndarray] = None

    def first_row(self, code: int) -> int:
        return int(np.argmax(self.codes == code))


def is_readable(kind: Any) -> bool:
    """Whether a column of this pyarrow type can be a field: not a list, a time or a picture."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return (
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_boolean(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_null(kind)
    )


def column_of(table: Any, name: str, where: Where) -> Column:
    """A column of a pyarrow.Table; raises BadInput for a type that `is_readable` excludes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = table[name]
    if not is_readable(values.type):
        raise BadInput(
            f"{where.whole}: column {name!r} holds {values.type}, expected text, numbers or "
            "booleans"
        )
    if pa.types.is_dictionary(values.type) and values.type.value_type != pa.string():
        values = values.cast(values.type.value_type)
    is_number = pa.types.is_floating(values.type) or pa.types.is_decimal(values.type)
    if is_number:
        values = values.cast(pa.float64())
    elif not pa.types.is_dictionary(values.type):
        values = values.cast(pa.string())
    if not pa.types.is_dictionary(values.type):
        values = pc.dictionary_encode(values)
    chunks = values.unify_dictionaries().chunks
    if not chunks:
        return Column(name, np.zeros(0, np.int64), [])
    distinct = chunks[0].dictionary
    # A missing value has the code behind the distinct ones, for which "" or NaN is added below.
    codes = [pc.fill_null(chunk.indices.cast(pa.int64()), len(distinct)) for chunk in chunks]
    joined = np.concatenate([chunk.to_numpy(zero_copy_only=False) for chunk in codes])
    if not is_number:
        return Column(name, joined, [*distinct.fill_null("").to_pylist(), ""])
    numbers = np.append(distinct.fill_null(np.nan).to_numpy(zero_copy_only=False), np.nan)
    return Column(name, joined, ["" if n != n else repr(n) for n in numbers.tolist()], numbers)


def as_numbers(column: Column, where: Where) -> Column:
    """The column as numbers, if it holds numbers by the rule for text files.

    Raises:
        BadInput: 99% of the values are numbers and one is not; the message has its line.
    """
    present = [code for code, text in enumerate(column.texts) if text.lower() not in _MISSING]
    numeric = [code for code in present if _NUMBER.fullmatch(column.texts[code])]
    if all(_WHOLE.fullmatch(column.texts[code]) for code in numeric):
        return column
    stray = sorted(set(present) - set(numeric))
    if stray:
        counts = np.bincount(column.codes, minlength=len(column.texts))
        if counts[stray].sum() > (1 - _MOSTLY) * counts[present].sum():
            return column
        expected = (
            f"a number as in {_MOSTLY:.0%} of the rows; correct it, or declare it categorical"
        )
        raise _misread(column, min(stray, key=column.first_row), where, expected)
    numbers = np.full(len(column.texts), math.nan)
    numbers[numeric] = [float(column.texts[code]) for code in numeric]
    return column._replace(numbers=numbers)


def labels_of(column: Column, where: Where) -> np.ndarray:
    """float32 [rows], 0 or 1; raises BadInput, with the row, for any other label."""
    values = np.array([_LABELS.get(text.lower(), math.nan) for text in column.texts])
    labels = values[column.codes] if len(column.codes) else np.zeros(0)
    if np.isnan(labels).any():
        row = int(np.argmax(np.isnan(labels)))
        raise _misread(column, int(column.codes[row]), where, "0 or 1")
    return labels.astype(np.float32)


def count_buckets(column: Column, where: Where) -> List[str]:
    """Criteo's transform of each distinct value, "" if missing; raises BadInput for no integer."""
    whole = [text[:-2] if text.endswith(".0") else text for text in column.texts]  # pandas' 260.0
    wrong = [code for code, text in enumerate(whole) if text and not _WHOLE.fullmatch(text)]
    if wrong:
        code = min(wrong, key=column.first_row)
        raise _misread(column, code, where, "a whole number or nothing")
    return [three_idiots(int(text)) if text else "" for text in whole]


def three_idiots(value: int) -> str:
    """The bucket of one of Criteo's counts."""
    return str(int(math.log(value) ** 2)) if value > 2 else f"SP{value}"


def equal_buckets(numbers: np.ndarray, early: np.ndarray) -> List[str]:
    """The bucket of each distinct value; "" where missing.

    Args:
        numbers: float64 [distinct], NaN where missing.
        early: float64, the values of the rows that set the edges.
    """
    edges, counts = np.unique(early[~np.isnan(early)], return_counts=True)
    if len(edges) > BUCKETS:
        weights = np.minimum(counts, counts.sum() / BUCKETS)
        share = (np.cumsum(weights) - weights) / weights.sum()
        _, first = np.unique(np.floor(share * BUCKETS), return_index=True)
        edges = edges[first]
    buckets = np.searchsorted(edges, numbers, side="right")
    return ["" if math.isnan(n) else f"bucket {b}" for n, b in zip(numbers, buckets)]


def _misread(column: Column, code: int, where: Where, expected: str) -> BadInput:
    return BadInput(
        f"{where.row(column.first_row(code))}: column {column.name!r} holds "
        f"{shown(column.texts[code])}, expected {expected}"
    )
