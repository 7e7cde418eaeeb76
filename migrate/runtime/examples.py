"""TensorFlow's ParseExample and ParseExampleV2: serialized tf.train.Example to tensors.

A feature is requested as one of these, by its name:

    sparse  any number of values per Example: a SparseTensor [examples, most values]
    dense   a fixed number, its default where an Example lacks it; or, if the first length of its
            shape is unknown, any number, filled up with the default
    ragged  any number of values: values and row splits

Its values are strings (Strings), float32 or int64. Features that are not requested are skipped.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import example, feature_lists
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

    Args:
        sparse_types, ragged_types: Strings, torch.float32 or torch.int64.
        dense_defaults: each in the type of its feature; empty if none may be missing.
        dense_shapes: without the batch; the first length may be None or -1.

    Raises:
        BadInput: an Example is broken, or a value missing, of another type or not of its shape.
    """
    if serialized.ndim != 1:
        raise UsageError(f"serialized Examples have one axis, not shape {list(serialized.shape)}")
    keys = [*sparse_keys, *dense_keys, *ragged_keys]
    of_dense = [Strings if isinstance(one, Strings) else one.dtype for one in dense_defaults]
    dtypes = [*sparse_types, *of_dense, *ragged_types]
    for name, dtype in zip(keys, dtypes):
        if dtype not in _KINDS:
            raise UsageError(f"feature {name!r}: {dtype} is not string, float32 or int64")
    names = Strings.of(keys, None).reshape([-1])
    keeps_empty = numpy.ones(len(keys), bool)
    # A dense feature whose list is empty is a missing one, and takes its default.
    keeps_empty[len(sparse_keys) : len(sparse_keys) + len(dense_keys)] = False
    bounds = serialized.offsets[:-1], serialized.offsets[1:]
    found = example.find(serialized.data, *bounds, names.data, names.offsets, keeps_empty)
    if found.broken >= 0:
        raise BadInput(f"Example {found.broken} is broken: it is not a serialized tf.train.Example")
    kinds = numpy.array([_KINDS[dtype] for dtype in dtypes], numpy.int64)
    read = feature_lists.values(serialized.data, found, kinds)
    features = map(_Feature, itertools.repeat(serialized.data), keys, dtypes, read)
    sparse = [next(features).sparse() for _ in sparse_keys]
    dense = [next(features).dense(*asked) for asked in zip(dense_defaults, dense_shapes)]
    ragged = [next(features).ragged(splits) for splits in ragged_split_types]
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

    Args:
        data: all bytes.
        read: an item of `feature_lists.values`.

    Attributes:
        counts: int64 [examples], how many values there are, 0 where it is missing.
    """

    def __init__(
        self, data: numpy.ndarray, name: str, dtype: Any, read: Tuple[numpy.ndarray, ...]
    ) -> None:
        self._data, self._name, self._dtype = data, name, dtype
        counts, self._bits, self._ends = read
        self._refuse(counts == feature_lists.BROKEN, "it is broken")
        self._refuse(counts == feature_lists.OTHER_KIND, f"its values are not of {dtype}")
        self.missing = counts == example.MISSING
        self.counts = numpy.where(self.missing, 0, counts)

    def sparse(self) -> Tuple[torch.Tensor, Column, torch.Tensor]:
        """Indices int64 [values, 2], values, and dense shape int64 [2]."""
        indices = torch.from_numpy(feature_lists.indices(self.counts))
        shape = torch.tensor([len(self.counts), int(self.counts.max(initial=0))])
        return indices, self._values(), shape

    def ragged(self, splits: torch.dtype) -> Tuple[Column, torch.Tensor]:
        """Values, and the row splits in this type."""
        ends = numpy.concatenate([[0], numpy.cumsum(self.counts)])
        return self._values(), torch.from_numpy(ends).to(splits)

    def dense(self, default: Column, shape: Sequence[Optional[int]]) -> Column:
        """The values, in the shape [batch, *shape]."""
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
        return self._filled(most, default).reshape([len(self.counts), *lengths])

    def _values(self) -> Column:
        if self._dtype is Strings:
            return Strings.of_spans(self._data, self._bits.view(numpy.int64), self._ends)
        if self._dtype == torch.float32:
            return torch.from_numpy(self._bits.astype(numpy.uint32).view(numpy.float32))
        return torch.from_numpy(self._bits.view(numpy.int64))

    def _filled(self, most: int, default: Any) -> Column:
        """`most` values per Example, its own and then the default."""
        values, size = self._values(), len(self.counts) * most
        if len(self._bits) == size:
            return values
        own = (numpy.arange(most) < self.counts[:, None]).reshape(-1)
        if isinstance(values, Strings):
            fill = default if default.numel() else Strings.of([""])
            # Positions among the values with the default behind them, which repeats for every
            # Example.
            places = values.numel() + numpy.arange(size) % fill.numel()
            places[own] = numpy.arange(values.numel())
            return Strings.concat([values, fill.reshape([-1])]).take(torch.from_numpy(places))
        whole = torch.zeros(size, dtype=self._dtype)
        if default.numel():
            whole.reshape(-1, default.numel())[:] = default.reshape(-1)
        whole[torch.from_numpy(own)] = values
        return whole

    def _refuse(self, wrong: numpy.ndarray, why: str) -> None:
        if wrong.any():
            row = int(numpy.flatnonzero(wrong)[0])
            raise BadInput(f"Example {row}, feature {self._name!r}: {why}")
