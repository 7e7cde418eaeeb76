"""TensorFlow's ParseExample and ParseExampleV2: serialized tf.train.Example to tensors.

A feature is asked for as one of these, by its name:

    sparse  any number of values per Example: a SparseTensor [examples, most values]
    dense   a fixed number, its default where an Example lacks it; or, if the first length of its
            shape is unknown, any number, filled up with the default
    ragged  any number of values: values and row splits

Its values are strings (Strings), float32 or int64. Features that are not asked for are skipped.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
import torch

from migrate.runtime.compiled import example, feature_lists
from migrate.runtime.strings import Strings
from semisync.common.errors import BadInput, UsageError

Column = Union[torch.Tensor, Strings]

_KINDS = {
    Strings: feature_lists.BYTES,
    torch.float32: feature_lists.FLOATS,
    torch.int64: feature_lists.INTEGERS,
}


class ParsedExamples(NamedTuple):
    """The outputs of ParseExampleV2, in its order; one tensor per feature in each."""

    sparse_indices: List[torch.Tensor]
    sparse_values: List[Column]
    sparse_shapes: List[torch.Tensor]
    dense_values: List[Column]
    ragged_values: List[Column]
    ragged_row_splits: List[torch.Tensor]


def parse_example(
    serialized: Strings,
    sparse_keys: Sequence[str] = (),
    sparse_types: Sequence[Any] = (),
    dense_keys: Sequence[str] = (),
    dense_defaults: Sequence[Column] = (),
    dense_shapes: Sequence[Sequence[Optional[int]]] = (),
    ragged_keys: Sequence[str] = (),
    ragged_types: Sequence[Any] = (),
    ragged_split_types: Sequence[torch.dtype] = (),
) -> ParsedExamples:
    """The features of `serialized` [n].

    sparse_types, ragged_types: Strings, torch.float32 or torch.int64
    dense_defaults: each in the type of its feature, and without a value where none may be missing
    dense_shapes: without the batch; the first length may be None or -1
    Raises BadInput, with the number of the Example, for what is broken, of another type, missing or
    not of its shape.
    """
    if serialized.ndim != 1:
        raise UsageError(f"serialized Examples have one axis, not shape {list(serialized.shape)}")
    names = Strings.of([*sparse_keys, *dense_keys, *ragged_keys], None).reshape([-1])
    keeps_empty = numpy.ones(names.numel(), bool)
    keeps_empty[len(sparse_keys) : len(sparse_keys) + len(dense_keys)] = False
    found = example.find(
        serialized.data, serialized.offsets, names.data, names.offsets, keeps_empty
    )
    if found.broken >= 0:
        raise BadInput(f"Example {found.broken} is broken: it is no serialized tf.train.Example")
    numbers = itertools.count()

    def feature(name: str, dtype: Any) -> _Feature:
        return _Feature(serialized.data, found, next(numbers), name, dtype)

    sparse = [feature(*asked).sparse() for asked in zip(sparse_keys, sparse_types)]
    dense = [
        feature(name, Strings if isinstance(default, Strings) else default.dtype).dense(
            default, shape
        )
        for name, default, shape in zip(dense_keys, dense_defaults, dense_shapes)
    ]
    ragged = [
        feature(name, dtype).ragged(splits)
        for name, dtype, splits in zip(ragged_keys, ragged_types, ragged_split_types)
    ]
    return ParsedExamples(
        [indices for indices, _, _ in sparse],
        [values for _, values, _ in sparse],
        [shape for _, _, shape in sparse],
        dense,
        [values for values, _ in ragged],
        [splits for _, splits in ragged],
    )


class _Feature:
    """One feature of all Examples.

    data: all bytes; found: its features, of which this is one, by its number
    counts: int64 [examples], how many values there are, 0 where it is missing
    """

    def __init__(
        self, data: numpy.ndarray, found: example.Found, number: int, name: str, dtype: Any
    ) -> None:
        if dtype not in _KINDS:
            raise UsageError(f"feature {name!r}: {dtype} is not string, float32 or int64")
        self._data, self._found, self._name, self._dtype = data, found.places[number], name, dtype
        self._singles: Optional[numpy.ndarray] = None  # the values, where each Example has one
        if found.alone[number] and found.kinds[number] == _KINDS[dtype]:
            self._singles = found.singles[number]
            self.counts = numpy.ones(len(self._singles), numpy.int64)
            self.missing = numpy.zeros(len(self._singles), bool)
            return
        counts = feature_lists.count(data, self._found, _KINDS[dtype])
        self._refuse(counts == feature_lists.BROKEN, "it is broken")
        self._refuse(counts == feature_lists.OTHER_KIND, f"its values are not of {dtype}")
        self.missing = counts == example.MISSING
        self.counts = numpy.where(self.missing, 0, counts)

    def sparse(self) -> Tuple[torch.Tensor, Column, torch.Tensor]:
        """Indices int64 [values, 2], values, and dense shape int64 [2]."""
        before = numpy.cumsum(self.counts) - self.counts
        total = int(self.counts.sum())
        indices = numpy.zeros((total, 2), numpy.int64)
        if self._singles is None:
            indices[:, 0] = numpy.repeat(numpy.arange(len(before)), self.counts)
            indices[:, 1] = numpy.arange(total) - before[indices[:, 0]]
        else:
            indices[:, 0] = before
        shape = torch.tensor([len(before), int(self.counts.max(initial=0))])
        return torch.from_numpy(indices), self._values(before, total, None), shape

    def ragged(self, splits: torch.dtype) -> Tuple[Column, torch.Tensor]:
        """Values, and the row splits in this type."""
        ends = numpy.concatenate([[0], numpy.cumsum(self.counts)])
        return self._values(ends[:-1], int(ends[-1]), None), torch.from_numpy(ends).to(splits)

    def dense(self, default: Column, shape: Sequence[Optional[int]]) -> Column:
        """The values in this shape behind the batch's."""
        lengths = [-1 if length is None else int(length) for length in shape]
        inner = math.prod(lengths[1:]) if lengths[:1] == [-1] else math.prod(lengths)
        if lengths[:1] == [-1]:
            self._refuse(self.counts % max(inner, 1) != 0, f"its values do not fill {lengths}")
            if default.numel() > 1:
                raise UsageError(f"feature {self._name!r} is filled up with one value")
            most = int(self.counts.max(initial=0))
            lengths = [most // max(inner, 1), *lengths[1:]]
        else:
            wrong = ~self.missing & (self.counts != inner)
            self._refuse(wrong, f"its values do not fill {lengths}")
            if not default.numel() and inner:
                self._refuse(self.missing, "it is required")
            most = inner
        starts = numpy.arange(len(self.counts)) * most
        values = self._values(starts, len(starts) * most, default)
        return values.reshape([len(starts), *lengths])

    def _values(self, places: numpy.ndarray, size: int, default: Any) -> Column:
        """`size` values, those of Example i from places[i] on, the default elsewhere."""
        if self._singles is not None and size == len(self.counts):
            return self._of_singles(self._singles)
        fills = default is not None and default.numel() and size > int(self.counts.sum())
        read = (self._data, self._found, self.counts, places)
        if self._dtype is Strings:
            starts, ends = numpy.zeros(size, numpy.int64), numpy.zeros(size, numpy.int64)
            feature_lists.string_values(*read, starts, ends)
            strings = Strings.of_spans(self._data, starts, ends)
            if not fills:
                return strings
            whole = default.reshape([-1]).tile([size // default.numel()])
            return Strings.where(torch.from_numpy(self._given(places, size)), strings, whole)
        values = torch.zeros(size, dtype=self._dtype)
        if fills:
            values.reshape(-1, default.numel())[:] = default.reshape(-1)
        if self._dtype == torch.float32:
            feature_lists.float_values(*read, values.numpy().view(numpy.uint32))
        else:
            feature_lists.integer_values(*read, values.numpy())
        return values

    def _of_singles(self, singles: numpy.ndarray) -> Column:
        if self._dtype is Strings:
            return Strings.of_spans(self._data, singles.view(numpy.int64), self._found[:, 1])
        if self._dtype == torch.float32:
            return torch.from_numpy(singles.astype(numpy.uint32).view(numpy.float32))
        return torch.from_numpy(singles.view(numpy.int64))

    def _given(self, places: numpy.ndarray, size: int) -> numpy.ndarray:
        """Which of `size` values come from an Example, bool."""
        steps = numpy.zeros(size + 1, numpy.int64)
        numpy.add.at(steps, places, self.counts > 0)
        numpy.add.at(steps, places + self.counts, -(self.counts > 0).astype(numpy.int64))
        given: numpy.ndarray = numpy.cumsum(steps[:-1]) > 0
        return given

    def _refuse(self, wrong: numpy.ndarray, why: str) -> None:
        if wrong.any():
            row = int(numpy.flatnonzero(wrong)[0])
            raise BadInput(f"Example {row}, feature {self._name!r}: {why}")
