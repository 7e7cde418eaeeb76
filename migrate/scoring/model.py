"""The interface of a model for `semisync score`, whichever framework computes it."""

from __future__ import annotations

import contextlib
import fnmatch
from typing import (
    TYPE_CHECKING,
    Any,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Protocol,
    Sequence,
    Tuple,
    TypeVar,
    Union,
)

import numpy as np

from semisync.common.errors import BadInput, MissingColumn

if TYPE_CHECKING:  # --help does not need it
    import pyarrow as pa

T = TypeVar("T")
TYPES = ("bool", "int32", "int64", "float32", "float64", "string")  # types to convert to


class Input(NamedTuple):
    """A column of the data that the model takes."""

    column: str
    name: str  # its name in the model
    dtype: Optional[str]  # numpy's name, or "bytes" for text; None: as in the data
    sparse: bool  # any number of values per row
    shape: Optional[Sequence[Optional[int]]] = None  # of a dense one, rows first; None: not known

    @property
    def several(self) -> bool:
        """Whether a row has several values, separated in a field of a text file. If the size is not
        known, text is one value, since it may hold the separator; numbers may be several."""
        one = (None, 1) if self.dtype in (None, "bytes") else (1,)
        return self.sparse or any(size not in one for size in (self.shape or ())[1:])


def columns_of(inputs: Sequence[Input]) -> Dict[str, str]:
    """{column: the option with which its input takes another column}; an input of unknown shape may
    be one value for all rows."""
    return {one.column: _option(one) for one in inputs}


def _option(one: Input) -> str:
    if one.sparse:
        return f"--sparse COLUMN={one.name}"
    scalar = f"--feed {one.name}=VALUE gives one value for all rows, "
    return (scalar if one.shape is None else "") + f"--input COLUMN={one.name}"


@contextlib.contextmanager
def naming_inputs(columns: Mapping[str, str]) -> Iterator[None]:
    """In its block, the message of a MissingColumn also names the option for another column.

    Args:
        columns: as from `columns_of`.
    """
    try:
        yield
    except MissingColumn as error:
        if error.column is None or error.column not in columns:
            raise
        raise BadInput(f"{error}; {columns[error.column]} names another column") from error


def of_column(said: Iterable[Tuple[str, T]], column: str) -> Optional[T]:
    """The value of the first pattern that matches the column, of (pattern, value), or None."""
    return next((value for name, value in said if fnmatch.fnmatchcase(column, name)), None)


class Feature(NamedTuple):
    """One input's values in one batch.

    Attributes:
        values: dense (rows,) or (rows, k, ...), sparse (values,); of text an Arrow array of
            large_binary, or of fixed-size lists of k, and so on.
        lengths: sparse: int64 (rows,), how many values each row has; dense: None.
    """

    values: Union[np.ndarray, pa.Array]
    lengths: Optional[np.ndarray]

    def numpy(self) -> np.ndarray:
        """The values; text as bytes objects."""
        if isinstance(self.values, np.ndarray):
            return self.values
        import pyarrow as pa

        size, flat = [len(self.values)], self.values
        while pa.types.is_fixed_size_list(flat.type):
            size, flat = [*size, flat.type.list_size], flat.flatten()
        return flat.to_numpy(zero_copy_only=False).astype(object).reshape(size)

    def part(self, start: int, stop: int) -> Feature:
        """The feature of some of the rows."""
        if self.lengths is None:
            return Feature(self.values[start:stop], None)
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        return Feature(self.values[ends[start] : ends[stop]], self.lengths[start:stop])

    def padded(self, more: int) -> Feature:
        """The feature with the last row repeated `more` times."""
        if not more:
            return self
        rows = len(self.values) if self.lengths is None else len(self.lengths)
        return self.take(np.append(np.arange(rows), np.full(more, rows - 1)))

    def take(self, rows: np.ndarray) -> Feature:
        """The feature of rows by their numbers, (n,), in that order."""
        places, lengths = rows, self.lengths
        if lengths is not None:
            starts = (np.cumsum(lengths) - lengths)[rows]
            lengths = lengths[rows]
            before = np.cumsum(lengths) - lengths
            places = np.arange(lengths.sum()) + np.repeat(starts - before, lengths)
        if isinstance(self.values, np.ndarray):
            return Feature(self.values[places], lengths)
        import pyarrow as pa

        return Feature(self.values.take(pa.array(places)), lengths)


class Model(Protocol):
    """A model that is ready to score."""

    inputs: List[Input]
    batch: Optional[int]  # rows that it takes at a time; None: any number
    output: Optional[str]  # the requested output

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, `features` in the order of `inputs`; float32 or float64."""

    def origin(self) -> Dict[str, Any]:
        """Its origin, for the file's metadata: kind, paths, SHA-256, versions."""

    def close(self) -> None:
        """Ends processes that it started."""
