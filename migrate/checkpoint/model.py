"""What a checkpoint's index says of a tensor, and the partitions that follow from it."""

from __future__ import annotations

from typing import List, NamedTuple, Tuple

from semisync.common.errors import BadInput


class Slice(NamedTuple):
    """The box of a tensor that is stored as one piece."""

    start: Tuple[int, ...]
    shape: Tuple[int, ...]


class TensorInfo(NamedTuple):
    """What the index says of a tensor.

    shape   sizes of the whole tensor
    dtype   TensorFlow's name of the data type
    slices  one Slice per stored piece, by their start; empty for an undivided tensor
    kind    "variable", "slot", "scalar" or "other", as far as names and shapes can tell
    nbytes  stored size in bytes
    """

    shape: Tuple[int, ...]
    dtype: str
    slices: Tuple[Slice, ...]
    kind: str
    nbytes: int


def partitions(info: TensorInfo) -> int:
    """Number of parts along the rows."""
    return len({piece.start[0] for piece in info.slices}) or 1


def row_blocks(info: TensorInfo, name: str) -> List[Tuple[int, int]]:
    """(first row, rows) of each partition along the rows.

    Raises BadInput if the partitions are not those that TensorFlow makes: rows // P each, and one
    more in the first rows % P; look-ups by "mod" and "div" rely on it.
    """
    rows = info.shape[0] if info.shape else 1
    blocks = sorted({(piece.start[0], piece.shape[0]) for piece in info.slices}) or [(0, rows)]
    count = len(blocks)
    sizes = [rows // count + (index < rows % count) for index in range(count)]
    even = [(sum(sizes[:index]), size) for index, size in enumerate(sizes)]
    if blocks != even:
        raise BadInput(
            f"tensor {name!r}: its partitions have {[size for _, size in blocks]} rows, expected "
            f"{sizes}: no partition strategy of TensorFlow reads such a variable"
        )
    return blocks
