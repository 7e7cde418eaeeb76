"""What a model is to `semisync score`, whichever framework computes it."""

from typing import Any, Dict, List, NamedTuple, Optional, Protocol

import numpy as np

TYPES = ("bool", "int32", "int64", "float32", "float64", "string")  # that a column can be given


class Input(NamedTuple):
    """A column of the data that the model takes."""

    column: str
    name: str  # what the model calls it
    dtype: Optional[str]  # numpy's name, or "bytes" for text; None: as the data has it
    sparse: bool  # any number of values per row


class Feature(NamedTuple):
    """One input's values in one batch."""

    values: np.ndarray  # dense: (rows,) or (rows, k); sparse: (values,); text: bytes as objects
    lengths: Optional[np.ndarray]  # sparse: int64 (rows,), how many values each row has

    def part(self, start: int, stop: int) -> "Feature":
        """Those of some of the rows."""
        if self.lengths is None:
            return Feature(self.values[start:stop], None)
        ends = np.concatenate([[0], np.cumsum(self.lengths)])
        return Feature(self.values[ends[start] : ends[stop]], self.lengths[start:stop])


class Model(Protocol):
    """A model that is ready to score."""

    inputs: List[Input]
    batch: Optional[int]  # rows that it takes at a time, at most; None: any number

    def score(self, rows: int, features: List[Feature]) -> np.ndarray:
        """The output for a batch, `features` in the order of `inputs`; float32 or float64."""

    def origin(self) -> Dict[str, Any]:
        """Where it came from, for the file's metadata: kind, paths, SHA-256, versions."""

    def close(self) -> None:
        """Ends what it started."""
