"""A checkpoint's tensors as a side of torch holds them."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Sequence,
    Tuple,
)

import numpy

from semisync.common.sentences import some_of
from semisync.encoding.dtypes import BFLOAT16

if TYPE_CHECKING:
    import torch

BLOCK_BYTES = 16 << 20  # of rows that are read at a time


class Held(NamedTuple):
    """A tensor that torch has.

    Attributes:
        dtype: torch's name of its type there.
        shape: as TensorFlow has it.
        by_id: whether its rows are in the order of the ids where TensorFlow deals them out to
            partitions in turn ("mod").
        blocks: yields its rows from front to back, [n, ...] each; of a scalar [1].
        resized: whether it may have another number of rows than the original, as a hash table may.
    """

    dtype: str
    shape: Tuple[int, ...]
    by_id: bool
    blocks: Callable[[], Iterator[numpy.ndarray]]
    resized: bool = False

    def some(self, chosen: numpy.ndarray) -> Held:
        """The rows of a table that a mask chooses."""

        def blocks() -> Iterator[numpy.ndarray]:
            first = 0
            for block in self.blocks():
                yield block[chosen[first : first + len(block)]]
                first += len(block)

        return Held(self.dtype, (int(chosen.sum()), *self.shape[1:]), False, blocks, resized=True)


def held_ids(ids: numpy.ndarray) -> Held:
    """The ids of a table's rows."""
    return Held("int64", ids.shape, False, lambda: iter([ids]), resized=True)


class Side(NamedTuple):
    """The tensors that torch has.

    Attributes:
        place: where, for messages.
        held: by the tensor's name in TensorFlow.
        lacking: tensors that the original must give -> why.
        refused: tensors whose state in torch does not lead back, and for which the original's
            values would be wrong -> why.
        scalars: values that the original's scalars must have.
        notes: for the reader.
    """

    place: str
    held: Dict[str, Held]
    lacking: Dict[str, str]
    refused: Dict[str, str]
    scalars: Dict[str, Any]
    notes: List[str]


def notes_on_state(left: Sequence[str], begun: Sequence[str]) -> List[str]:
    """Notes on state that TensorFlow's steps change and torch's do not, and that is absent."""
    notes = []
    if left:
        notes.append(f"{_first(left)}, which TensorFlow's steps change, are the original's")
    if begun:
        notes.append(
            f"{_first(begun)}, which the original lacks, are left out: a job that restores "
            "this starts them over"
        )
    return notes


def _first(names: Sequence[str]) -> str:
    return some_of(map(repr, names), most=1)


def as_array(values: torch.Tensor) -> numpy.ndarray:
    """`values` as an array, on the CPU of the same memory; torch.bfloat16 becomes `BFLOAT16`."""
    import torch

    values = values.cpu()
    if values.dtype == torch.bfloat16:
        # torch refuses to convert a bfloat16, which numpy lacks: its bits pass as int16.
        return values.view(torch.int16).numpy().view(BFLOAT16)
    return values.numpy()
