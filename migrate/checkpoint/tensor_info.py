"""A tensor's entry in a checkpoint's index, and its purpose, by its name and shape.

A slot is named `<variable>/<optimizer name>` or `<variable>/<optimizer name>_<k>` and has the
shape of its variable. The optimizer's `name=` argument changes the name, so that only TensorFlow's
default names are known here; a MetaGraph gives the others (`migrate.graph.training`). In an
object-based checkpoint the key of a slot says so itself (`migrate.checkpoint.objects` finds its
variable).
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, NamedTuple, Sequence, Tuple

from migrate.optimizers.registry import LEAVES
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import DType

_LEAF = re.compile(r"({})(_\d+)?".format("|".join(LEAVES)))
MAX_ROW = 512 << 20  # bytes: a reader holds a whole row, perhaps together with those of its slots


class Slice(NamedTuple):
    """The box of a tensor that is stored as one piece."""

    start: Tuple[int, ...]
    shape: Tuple[int, ...]


class TensorInfo(NamedTuple):
    """A tensor's entry in the index.

    Attributes:
        shape: sizes of the whole tensor.
        dtype: TensorFlow's name of the data type.
        slices: one `Slice` per stored piece, by their start; empty for an undivided tensor.
        kind: "variable", "slot", "scalar" or "other", by name and shape.
        nbytes: stored size in bytes.

    Examples:
        >>> migrate.open_checkpoint("model.ckpt-40000")["products/Adagrad"]
        TensorInfo(shape=(100, 4), dtype='float32', slices=(), kind='slot', nbytes=1600)
    """

    shape: Tuple[int, ...]
    dtype: str
    slices: Tuple[Slice, ...]
    kind: str
    nbytes: int


def rows_of(shape: Sequence[int]) -> int:
    """The number of rows; a scalar is one row."""
    return shape[0] if shape else 1


def refuse_wide_rows(size: int, where: str) -> None:
    """Raises BadInput for rows larger than any real model's, before one is allocated."""
    if size > MAX_ROW:
        raise BadInput(
            f"{where} has rows of {size:,} bytes; read by rows are those of at most {MAX_ROW:,}"
        )


def classify(tensors: Mapping[str, Tuple[DType, Tuple[int, ...]]]) -> Dict[str, str]:
    """ "variable", "slot", "scalar" or "other" (no plain numbers) for each name."""
    return {name: _kind(name, tensors) for name in tensors}


def _kind(name: str, tensors: Mapping[str, Tuple[DType, Tuple[int, ...]]]) -> str:
    dtype, shape = tensors[name]
    if dtype.array is None:
        return "other"
    if "/.OPTIMIZER_SLOT/" in name:
        return "slot"
    base, _, leaf = name.rpartition("/")
    # The shape decides too: a variable may be called "Adam", and TensorFlow's slots have their
    # variable's shape.
    if _LEAF.fullmatch(leaf) and base in tensors and tensors[base][1] == shape:
        return "slot"
    return "variable" if shape else "scalar"
