"""What every format offers to the rest of the readers.

names      the columns, in order
infer      whether values came as text, so that the kind of a column must be told from them
fixed      whether the format itself says what each column is (Criteo's), so that none is
           dropped for its values
table()    all rows; columns of delimited files are dictionary-encoded text, "" where missing
where(i)   how to name the i-th row, from 0, in an error: "FILE line 17"
"""

import pathlib
from typing import TYPE_CHECKING, Callable, NamedTuple, Tuple

if TYPE_CHECKING:
    import pyarrow as pa

CRITEO_COUNTS = tuple(f"I{i}" for i in range(1, 14))
CRITEO_CATEGORIES = tuple(f"C{i}" for i in range(1, 27))
CRITEO_NAMES = ("label",) + CRITEO_COUNTS + CRITEO_CATEGORIES


class Where(NamedTuple):
    """How an error names its place.

    Attributes:
        whole: the file, or the folder of the files.
        row: the i-th row, from 0.
    """

    whole: str
    row: Callable[[int], str]


class Source:
    """One file, opened far enough to know its columns."""

    infer = True
    fixed = False

    def __init__(self, path: pathlib.Path, names: Tuple[str, ...]) -> None:
        self.path = path
        self.names = names

    def table(self) -> "pa.Table":
        raise NotImplementedError

    def where(self, row: int) -> str:
        raise NotImplementedError
