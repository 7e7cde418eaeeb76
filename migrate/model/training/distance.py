"""How far torch's values are from TensorFlow's, relative to their size or to a scale of it."""

from __future__ import annotations

from typing import Any, Tuple

import numpy
import torch

from migrate.model.training.partitions import Slice
from semisync.common.errors import BadInput

OF_ITSELF = 32  # how many times what TensorFlow differs from itself by torch may differ


def same_rows(ours: Slice, theirs: Any) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Both gradients, of a table the sums of the rows that TensorFlow's has, ascending; a row that
    ours has beyond them is added, as zeros of TensorFlow's."""
    values, wanted = ours[0].detach().numpy(), theirs[0]
    if ours[1] is None:
        return values, wanted
    own = ours[1].numpy()
    rows = numpy.unique(theirs[1])
    rows = numpy.concatenate([rows, numpy.setdiff1d(own, rows)])
    order = numpy.argsort(rows, kind="stable")
    found = []
    for part, of in ((own, values), (theirs[1], wanted)):
        total = numpy.zeros((len(rows), *wanted.shape[1:]))
        numpy.add.at(total, order[numpy.searchsorted(rows, part, sorter=order)], of)
        found.append(total)
    return found[0], found[1]


def of_rows(ours: numpy.ndarray, theirs: numpy.ndarray, noise: Any = None) -> float:
    """`relative`, to the scale of each row. noise: of TensorFlow's rows, on that scale."""
    scale = _row_scale(theirs)
    if noise is not None:
        more = numpy.zeros(theirs.shape)
        more[slice(len(noise)) if theirs.ndim else ...] = noise + _row_scale(noise)
        scale = numpy.maximum(scale, more)
    return relative(ours, theirs, scale)


def _row_scale(values: numpy.ndarray) -> numpy.ndarray:
    squares = numpy.asarray(values, numpy.float64) ** 2
    axis = -1 if squares.ndim > 1 else None
    return numpy.sqrt(squares.mean(axis=axis, keepdims=True)) if squares.size else squares


def relative(got: Any, want: Any, scale: Any) -> float:
    """The largest |got - want| / max(|want|, scale); infinite where one is not a number."""
    ours, theirs = (numpy.asarray(array(one), numpy.float64) for one in (got, want))
    if ours.shape != theirs.shape:
        raise BadInput(f"a value is {list(ours.shape)}, and {list(theirs.shape)} in TensorFlow")
    difference = numpy.abs(ours - theirs)
    if not difference.size or not difference.any():
        return 0.0
    with numpy.errstate(divide="ignore", invalid="ignore"):
        shares = difference / numpy.maximum(numpy.abs(theirs), scale)
    largest = numpy.max(numpy.where(difference > 0, shares, 0.0))
    return float(largest) if numpy.isfinite(difference).all() else float("inf")


def array(value: Any) -> Any:
    """A tensor as NumPy has it; anything else as it is."""
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value
