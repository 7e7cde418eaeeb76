"""TensorFlow's StringSplit and StringSplitV2: one row of a SparseTensor per string.

1. StringSplit, of `tf.string_split`: each byte of the delimiter delimits; without a delimiter every
   byte is a part. Empty parts are left out unless `skip_empty` is false.
2. StringSplitV2, of `tf.strings.split`: the separator is a string, and as in Python's str.split no
   separator means runs of white space; empty parts stay.
Source: tensorflow/core/kernels/string_split_op.cc
"""

from __future__ import annotations

from typing import Tuple, Union

import numpy
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import splitting
from semisync.common.errors import BadInput

Sparse = Tuple[torch.Tensor, Strings, torch.Tensor]
Text = Union[Strings, str, bytes]


def string_split(strings: Strings, delimiter: Text = " ", skip_empty: bool = True) -> Sparse:
    """StringSplit: indices int64 [n, 2], the parts [n], dense_shape int64 [2]."""
    at = _bytes_of(delimiter)
    if not len(at):
        first, last = int(strings.offsets[0]), int(strings.offsets[-1])
        starts = numpy.arange(first, last)
        parts = (starts, starts + 1, strings.offsets[1:] - strings.offsets[:-1])
    else:
        delimiters = numpy.zeros(256, bool)
        delimiters[at] = True
        parts = splitting.at_bytes(strings.data, strings.offsets, delimiters, skip_empty)
    return _sparse(strings, *parts)


def string_split_v2(strings: Strings, sep: Text = "", maxsplit: int = -1) -> Sparse:
    """StringSplitV2: indices int64 [n, 2], the parts [n], dense_shape int64 [2].

    Args:
        maxsplit: the largest number of splits; -1: all.
    """
    at = _bytes_of(sep)
    if maxsplit == 0:
        parts = (strings.offsets[:-1], strings.offsets[1:], numpy.ones(strings.numel(), int))
    elif len(at):
        parts = splitting.at_separator(strings.data, strings.offsets, at, maxsplit)
    else:
        parts = splitting.at_spaces(strings.data, strings.offsets, maxsplit)
    return _sparse(strings, *parts)


def _bytes_of(text: Text) -> numpy.ndarray:
    one = Strings.of(text)
    if one.numel() != 1:
        raise BadInput(f"strings are split at one delimiter, not at {one.numel()}")
    return one.data[one.offsets[0] : one.offsets[1]]


def _sparse(
    strings: Strings, starts: numpy.ndarray, ends: numpy.ndarray, counts: numpy.ndarray
) -> Sparse:
    """The SparseTensor whose row i holds counts[i] of the parts."""
    if strings.ndim != 1:
        raise BadInput(f"strings to split have one axis, not shape {list(strings.shape)}")
    rows = numpy.repeat(numpy.arange(len(counts)), counts)
    within = numpy.arange(len(starts)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
    indices = torch.from_numpy(numpy.stack([rows, within], axis=1))
    shape = torch.tensor([len(counts), int(counts.max(initial=0))])
    return indices, Strings.of_spans(strings.data, starts, ends), shape
