"""How far torch's values are from TensorFlow's, relative to their size or to a scale of it."""

from __future__ import annotations

from typing import Any, Tuple

import numpy
import torch

from migrate.model.training.partitions import Slice
from semisync.common.errors import BadInput

OF_ITSELF = 32  # multiple of TensorFlow's own rounding by which torch may differ
# Rounding of an update in ulps of the value: a row that a batch has 64 times is moved 64 times. The
# largest seen is 39, with the optimizers of `benchmarks/judgement.py` on its first data set.
_ULPS = 64


def same_rows(ours: Slice, theirs: Any) -> Tuple[numpy.ndarray, numpy.ndarray]:
    """Both gradients as arrays; for a table their sums per row: TensorFlow's rows, ascending, then
    any further rows of ours, which are 0 in TensorFlow's."""
    values, wanted = ours[0].detach().cpu().numpy(), theirs[0]
    if ours[1] is None:
        return values, wanted
    own = ours[1].cpu().numpy()
    rows = numpy.unique(theirs[1])
    rows = numpy.concatenate([rows, numpy.setdiff1d(own, rows)])
    # searchsorted needs ascending rows, and the further rows of ours are appended.
    order = numpy.argsort(rows, kind="stable")
    found = []
    for part, of in ((own, values), (theirs[1], wanted)):
        total = numpy.zeros((len(rows), *wanted.shape[1:]))
        # Unbuffered: a row that occurs several times is added several times.
        numpy.add.at(total, order[numpy.searchsorted(rows, part, sorter=order)], of)
        found.append(total)
    return found[0], found[1]


def of_rows(ours: numpy.ndarray, theirs: numpy.ndarray, noise: Any = None) -> float:
    """The largest difference relative to the scale of each row, see `relative`.

    Args:
        noise: of TensorFlow's rows, on that scale; a row whose noise is 0, such as one that is 0 by
            chance, gets that of the others.
    """
    scale = _row_scale(theirs)
    if noise is not None:
        # Further rows of ours come last and have no noise of their own: they get that of the
        # others.
        more = numpy.full(theirs.shape, _scale(noise))
        more[slice(len(noise)) if theirs.ndim else ...] += noise + _row_scale(noise)
        scale = numpy.maximum(scale, more)
    return relative(ours, theirs, scale)


def ulp(values: numpy.ndarray, dtype: numpy.dtype) -> float:
    """The rounding, in `dtype`, of a number as large as the root mean square."""
    return float(numpy.finfo(dtype).eps) * _scale(values)


def _row_scale(values: numpy.ndarray) -> numpy.ndarray:
    squares = numpy.asarray(values, numpy.float64) ** 2
    axis = -1 if squares.ndim > 1 else None
    return numpy.sqrt(squares.mean(axis=axis, keepdims=True)) if squares.size else squares


def _scale(values: numpy.ndarray) -> float:
    squares = numpy.asarray(values, numpy.float64) ** 2
    return float(numpy.sqrt(squares.mean())) if squares.size else 0.0


def of_update(
    ours: numpy.ndarray, theirs: numpy.ndarray, before: numpy.ndarray, noise: Any = None
) -> float:
    """The largest difference, less the rounding of the value itself, relative to the change from
    `before` or to the root mean square of the tensor's changes, whichever is larger.

    Args:
        noise: of the change, on its scale.
    """
    _check_shapes(ours, theirs)
    values, change = numpy.abs(theirs), numpy.abs(theirs - before)
    # A small change of a large value is itself rounded to the value's own ulps.
    ulps = _ULPS * numpy.finfo(theirs.dtype).eps * numpy.maximum(values, numpy.abs(before))
    distance = numpy.abs(ours.astype(numpy.float64) - theirs)
    scale = numpy.maximum(change, _scale(change))
    if noise is not None:
        scale = numpy.maximum(scale, noise + _row_scale(noise))
    return _largest(numpy.maximum(distance - ulps, 0.0), scale)


def relative(got: Any, want: Any, scale: Any) -> float:
    """The largest |got - want| / max(|want|, scale); infinite if one is not a number."""
    ours, theirs = (numpy.asarray(array(one), numpy.float64) for one in (got, want))
    _check_shapes(ours, theirs)
    return _largest(numpy.abs(ours - theirs), numpy.maximum(numpy.abs(theirs), scale))


def _check_shapes(ours: numpy.ndarray, theirs: numpy.ndarray) -> None:
    if ours.shape != theirs.shape:
        raise BadInput(f"a value is {list(ours.shape)}, and {list(theirs.shape)} in TensorFlow")


def _largest(difference: numpy.ndarray, size: numpy.ndarray) -> float:
    if not difference.size or not difference.any():
        return 0.0
    with numpy.errstate(divide="ignore", invalid="ignore"):
        largest = numpy.max(numpy.where(difference > 0, difference / size, 0.0))
    # NaN > 0 is false, so that the maximum leaves NaN out.
    return float(largest) if numpy.isfinite(difference).all() else float("inf")


def array(value: Any) -> Any:
    """A tensor as a NumPy array; anything else unchanged."""
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else value
