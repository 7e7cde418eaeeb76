"""What a reader of any format tells of the tensors of a target, and gives of them."""

from __future__ import annotations

from typing import Dict, NamedTuple, Protocol, Tuple

import torch


class Stored(NamedTuple):
    """A tensor of the target: its sizes and torch's name of its data type."""

    shape: Tuple[int, ...]
    dtype: str


class Reader(Protocol):
    """tensors: by name. rows: a range of a tensor's rows; a scalar is one row."""

    tensors: Dict[str, Stored]

    def rows(self, fqn: str, first: int, count: int) -> torch.Tensor:
        """Rows first..first+count. BadInput where they cannot be read."""
        ...

    def reopened(self) -> Reader:
        """The same for another thread."""
        ...
