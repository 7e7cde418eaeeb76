"""The difference of two values, and the elements where it is too large.

    |a - b| <= 2e-6 + 1e-5 |b|        b TensorFlow's

or a multiple of TensorFlow's own rounding, if that was measured (the element's, and the root mean
square of the tensor's). This applies to the model's outputs; for intermediate values, which may
pass through 0, |b| is at least the root mean square of the whole tensor. Integers, booleans and
text are equal or not. NaN equals NaN, and is infinitely far from anything else.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from migrate.model.training.distance import OF_ITSELF

ABSOLUTE, RELATIVE = 2e-6, 1e-5


class Apart(NamedTuple):
    """Per element: |a - b|, the same / |b| (0 where b is 0), and whether that is too large."""

    absolute: np.ndarray
    relative: np.ndarray
    beyond: np.ndarray


def apart(
    theirs: np.ndarray,
    ours: np.ndarray,
    on_the_way: bool = False,
    rounding: Optional[np.ndarray] = None,
) -> Apart:
    """The difference of `ours` from TensorFlow's value, of the same shape.

    Args:
        on_the_way: whether it is an intermediate value, see above.
        rounding: of TensorFlow's value, of the same shape.
    """
    if theirs.dtype.kind not in "fiub" or ours.dtype.kind not in "fiub":
        other = theirs != ours
        return Apart(np.where(other, np.inf, 0.0), np.where(other, np.inf, 0.0), other)
    if theirs.dtype.kind != "f" and ours.dtype.kind != "f":
        other = theirs != ours
        distance = np.abs(theirs.astype(np.float64) - ours.astype(np.float64))
        return Apart(distance, _shares(distance, theirs), other)
    wanted, given = theirs.astype(np.float64), ours.astype(np.float64)
    same = (wanted == given) | (np.isnan(wanted) & np.isnan(given))
    with np.errstate(invalid="ignore"):
        distance = np.abs(wanted - given)
    # inf - inf and NaN - NaN are NaN, but equal; any other NaN is infinitely far.
    distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    size = np.abs(wanted)
    if on_the_way and size.size:
        finite = wanted[np.isfinite(wanted)]
        size = np.maximum(size, np.sqrt(np.mean(finite**2)) if finite.size else 0.0)
    more = 0.0 if rounding is None else OF_ITSELF * (rounding + np.sqrt(np.mean(rounding**2)))
    with np.errstate(invalid="ignore"):
        near = np.isfinite(distance) & (distance <= np.maximum(ABSOLUTE + RELATIVE * size, more))
    return Apart(distance, _shares(distance, wanted), ~(same | near))


def _shares(distance: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    size = np.abs(wanted.astype(np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = distance / size
    return np.where((distance > 0) & (size > 0), shares, 0.0)


def place(flat: int, shape: Tuple[int, ...]) -> Tuple[int, ...]:
    """The index of an element of the flattened array."""
    return tuple(int(one) for one in np.unravel_index(flat, shape))


def plain(value: Any) -> Any:
    """A NumPy scalar for JSON: NaN, infinities and bytes as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    value = value.item() if isinstance(value, np.generic) else value
    return value if not isinstance(value, float) or np.isfinite(value) else str(value)
