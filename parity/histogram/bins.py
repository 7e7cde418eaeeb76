"""Fixed bins of scores: rising with the score, and fine where scores lie.

The bits of a float of either sign rise with its magnitude, so bits without their low end are bins
of an even relative width. From 2^-24 to 2^8, where probabilities and logits lie, each power of two
has 2^15 of them; below and above it has 2^8. Bins do not depend on the data, so counts by bin of
different data add up. A coarse bin is 256 of them, and none spans two powers of two that differ in
width.

Scores of double precision are rounded to single first; both zeros are one score.
"""

import mmap
from typing import Any, Tuple

import numpy as np

_MANTISSA, _BIAS = 23, 127  # of a float32
_FINE_BITS, _WIDE_BITS = 15, 8
_LOW, _HIGH = (_BIAS - 24) << _MANTISSA, (_BIAS + 8) << _MANTISSA  # bits where fine bins begin, end
_FINE, _WIDE = _MANTISSA - _FINE_BITS, _MANTISSA - _WIDE_BITS  # bits that are dropped
_BELOW = _LOW >> _WIDE
_ABOVE = _BELOW + ((_HIGH - _LOW) >> _FINE)
_HALF = _ABOVE + (((256 << _MANTISSA) - _HIGH) >> _WIDE)  # bins of either sign

BINS = 2 * _HALF
COARSE_BITS = 8
COARSE_BINS = BINS >> COARSE_BITS


def bins_of(scores: np.ndarray) -> np.ndarray:
    """int32 (n,): the bin, below BINS, of each finite score, float32 or float64 (n,), n > 0."""
    with np.errstate(over="ignore"):  # scores beyond single precision share the last bin
        scores = scores.astype(np.float32, copy=False)
    bits = scores.view(np.int32)
    # Most probabilities are so; a negative float's bits are a negative int32.
    if bits.min() >= _LOW and bits.max() < _HIGH:
        return (bits >> _FINE) + np.int32(_HALF + _BELOW - (_LOW >> _FINE))
    size = bits & np.int32(0x7FFFFFFF)
    place = np.minimum(size, _LOW) >> _WIDE
    place += (np.clip(size, _LOW, _HIGH) - np.int32(_LOW)) >> _FINE
    place += (np.maximum(size, _HIGH) - np.int32(_HIGH)) >> _WIDE
    place += np.int32(_HALF)
    return np.where(scores < 0, np.int32(BINS - 1) - place, place)


def middles(bins: np.ndarray, bits: int = 0) -> np.ndarray:
    """float64: the score in the middle of each bin, or of each 2^bits bins."""
    bins = bins.astype(np.int64)
    return (lower_edges(bins << bits) + lower_edges((bins + 1) << bits)) / 2


def lower_edges(bins: np.ndarray) -> np.ndarray:
    """float64: the score where each bin begins, the one nearest 0 of a negative one."""
    place = np.abs(bins - _HALF)
    size = np.minimum(place, _BELOW) << _WIDE
    size += (np.clip(place, _BELOW, _ABOVE) - _BELOW) << _FINE
    size += np.maximum(place - _ABOVE, 0) << _WIDE
    largest = np.array(np.finfo(np.float32).max, np.float32).view(np.int32)
    scores = np.minimum(size, largest).astype(np.int32).view(np.float32).astype(np.float64)
    return np.where(bins < _HALF, -scores, scores)


def empty_counts(shape: Tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros that take memory only where they are written, 4 KiB at a time.

    Data use few of the bins, and these lie together. (numpy asks for huge pages instead.)
    """
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return np.frombuffer(pages, dtype).reshape(shape)
