"""The use of a data set's columns in a model, and their form in text files.

    kind        in Parquet, ORC, JSON lines and TFRecord  in text               becomes
    ids         integers, or lists of them                7|12|3                a KeyedJaggedTensor
    weighted    list<struct<id, weight>>, map<id, weight> 7:0.5|12:1            a weighted one
    dense       numbers; lists of `width` of them         0.25, 1|0|3           columns of a matrix
    numbers     numbers, or lists of them                 0.5|0.25              jagged float32
    label       numbers, booleans                         1                     float32 [rows]
    key         integers, text, dates and times           row-17                passed through
    string      text                                      red                   passed through
    strings     text, or lists of it                      red|blue              passed through

Text that is a number is one, and so is a float without a fraction where integers are expected.

A missing value (null, an empty field, for numbers NaN too) is the column's default. Without one,
a row of ids, weighted, numbers or strings has no values there, and any other column refuses it. A
missing value inside a list is refused.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from migrate.model.features.table_rows import TableRows
from migrate.scoring.model import TYPES
from parity.io.text_format import TextFormat as TextFormat  # a name of `migrate.data`
from semisync.common.errors import UsageError

KINDS = ("dense", "ids", "key", "label", "numbers", "string", "strings", "weighted")
_DTYPES: Dict[str, Tuple[Optional[str], ...]] = {
    "ids": ("int64", "int32"),
    "weighted": ("int64", "int32"),
    "key": ("int64", "string", "timestamp"),
    "dense": ("float32", "float64", "int64", "int32", "bool"),
}
_AS_IS = ("key", "weighted")


class Column(NamedTuple):
    """One column of the files.

    Args:
        name: in the files.
        kind: "dense", "ids", "key", "label", "numbers", "string", "strings" or "weighted".
        dtype: of ids int64 (the default) or int32; of a dense column float32 (the default), or
            another of numbers where a `convert` takes it; of a key int64, string (in a text file
            the default), or timestamp, of microseconds in UTC, from dates, times and ISO 8601.
        default: the replacement of a missing value.
        width: values per row of a dense column.
        type: to which the values are first converted: bool, int32, int64, float32, float64 or
            string.
        tables: the embedding tables in which the integers are row numbers; others are refused.
        among: the only numbers that it may hold.

    Examples:
        >>> from migrate.data import Column
        >>> Column("price", "dense", default=0.0).to_json()
        {'name': 'price', 'kind': 'dense', 'default': 0.0}
    """

    name: str
    kind: str
    dtype: Optional[str] = None
    default: Union[int, float, str, None] = None
    width: int = 1
    type: Optional[str] = None
    tables: Sequence[TableRows] = ()
    among: Sequence[float] = ()

    @property
    def of_integers(self) -> bool:
        """Whether it holds integers, one per row or several."""
        return self.kind == "ids" or (self.kind == "dense" and self.dtype in ("int64", "int32"))

    def to_json(self) -> Dict[str, Any]:
        """The fields that are not their defaults; `Column(**fields)` makes the column again.

        Returns:
            A dict.
        """
        unset = self._field_defaults
        fields = self._asdict().items()
        return {key: value for key, value in fields if key not in unset or value != unset[key]}


def checked(schema: Iterable[Column]) -> List[Column]:
    """The columns; raises UsageError for an invalid kind, dtype, default, ..."""
    columns = [Column(*column) for column in schema]
    names = [column.name for column in columns]
    if not columns:
        raise UsageError("the schema has no column; name what to read")
    for column in columns:
        at = f"column {column.name!r} of the schema"
        if names.count(column.name) > 1:
            raise UsageError(f"{at} occurs twice")
        if column.kind not in KINDS:
            raise UsageError(f"{at} is of kind {column.kind!r}; there are: {', '.join(KINDS)}")
        dtypes = _DTYPES.get(column.kind, ())
        if column.dtype is not None and column.dtype not in dtypes:
            possible = " or ".join(map(str, dtypes)) or "none"
            raise UsageError(f"{at} has dtype {column.dtype!r}; of kind {column.kind}: {possible}")
        if column.type is not None and (column.kind in _AS_IS or column.type not in TYPES):
            possible = "none" if column.kind in _AS_IS else ", ".join(TYPES)
            raise UsageError(f"{at} has type {column.type!r}; of kind {column.kind}: {possible}")
        if column.width < 1 or (column.width != 1 and column.kind != "dense"):
            raise UsageError(f"{at} has width {column.width}; only a dense column is wider than 1")
        _check_default(column, at)
    return columns


def of_kind(schema: Sequence[Column], *kinds: str) -> List[Column]:
    """The columns of these kinds."""
    return [column for column in schema if column.kind in kinds]


def _check_default(column: Column, at: str) -> None:
    if column.default is None:
        return
    if column.kind in ("weighted", "numbers", "strings"):
        raise UsageError(f"{at} has a default; a missing {column.kind} value is a row without any")
    wanted: Dict[str, Any] = {
        "ids": int,
        "string": str,
        "dense": (int, float),
        "label": (int, float),
    }
    right = wanted.get(column.kind, (int, str))
    if not isinstance(column.default, right) or isinstance(column.default, bool):
        raise UsageError(f"{at} has the default {column.default!r}, which is not of its kind")
    if column.kind == "ids":
        bits = 31 if column.dtype == "int32" else 63
        if not -(1 << bits) <= int(column.default) < 1 << bits:
            raise UsageError(f"{at} has the default {column.default!r}, which does not fit it")
