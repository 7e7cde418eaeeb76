"""TensorFlow's SparseCross, which `crossed_column` of 1.15 and of 2.x puts into a graph.

A column is a SparseTensor of rank 2 or a dense matrix, of strings or of int64. A row's crosses are
the product of its features in all columns, SparseTensors first, the last column's changing fastest.
A cross is

1. hashed: FingerprintCat64 from `hash_key` on, over Fingerprint64 of a string and over an integer
   as it is; then the remainder, unsigned;
2. or else text: the features, joined by "_X_".

TensorFlow 2's SparseCrossHashed and SparseCrossV2 are other functions; feature columns do not write
them.
Source: tensorflow/core/kernels/sparse_cross_op.cc
"""

from __future__ import annotations

from typing import Sequence, Tuple, Union

import numpy
import torch

from migrate.runtime.strings import Strings
from migrate.runtime.text import string_join
from semisync.common.compiled import crosses, decimal, farmhash
from semisync.common.errors import BadInput, UsageError

Features = Union[torch.Tensor, Strings]

# The divisor without buckets: TensorFlow takes the remainder by the largest int64, to stay at 0 or
# above.
_LARGEST = numpy.uint64(2**63 - 1)


def sparse_cross(
    indices: Sequence[torch.Tensor],
    values: Sequence[Features],
    shapes: Sequence[torch.Tensor],
    dense_inputs: Sequence[Features],
    hashed_output: bool = False,
    num_buckets: int = 0,
    hash_key: int = 0xDECAFCAFFE,
) -> Tuple[torch.Tensor, Features, torch.Tensor]:
    """The SparseTensor of all crosses: indices int64 [n, 2], values [n], dense_shape int64 [2].

    Args:
        hashed_output: the values are int64 buckets instead of strings.
        num_buckets: 0 for all non-negative int64.
    """
    batch = _batch(indices, values, shapes, dense_inputs)
    bounds = [
        crosses.row_bounds(numpy.ascontiguousarray(where.numpy()[:, 0]), batch) for where in indices
    ] + [numpy.arange(batch + 1) * dense.shape[1] for dense in dense_inputs]
    where, picked, longest = crosses.products(numpy.stack(bounds))
    columns = list(zip([*values, *dense_inputs], picked))
    crossed: Features
    if hashed_output:
        hashes = numpy.full(len(where), hash_key & 0xFFFFFFFFFFFFFFFF, numpy.uint64)
        for features, positions in columns:
            crosses.chain(hashes, _hashes(features), positions)
        buckets = numpy.uint64(num_buckets) if num_buckets > 0 else _LARGEST
        crossed = torch.from_numpy(crosses.remainders(hashes, buckets))
    else:
        texts = [_texts(features).take(torch.from_numpy(at)) for features, at in columns]
        crossed = string_join(texts, "_X_")
    return torch.from_numpy(where), crossed, torch.tensor([batch, longest])


def _batch(
    indices: Sequence[torch.Tensor],
    values: Sequence[Features],
    shapes: Sequence[torch.Tensor],
    dense_inputs: Sequence[Features],
) -> int:
    """The number of rows, on which all columns must agree."""
    if not len(indices) == len(values) == len(shapes) or not len(indices) + len(dense_inputs):
        raise UsageError("a cross needs the indices, values and shape of each SparseTensor")
    for where, features, shape in zip(indices, values, shapes):
        if where.ndim != 2 or where.shape[1] != 2 or len(shape) != 2:
            raise BadInput("a column of a cross is a SparseTensor of rank 2; reshape it")
        if features.ndim != 1 or len(where) != len(features):
            raise BadInput("a SparseTensor in a cross has more or fewer values than indices")
    if any(dense.ndim != 2 for dense in dense_inputs):
        raise BadInput("a dense column of a cross is a matrix; reshape it")
    rows = [int(shape[0]) for shape in shapes] + [dense.shape[0] for dense in dense_inputs]
    if len(set(rows)) > 1:
        raise BadInput(f"the columns of a cross have {', '.join(map(str, rows))} rows")
    return rows[0]


def _hashes(features: Features) -> numpy.ndarray:
    if isinstance(features, Strings):
        return farmhash.fingerprints(features.data, features.offsets)
    return _integers(features).view(numpy.uint64)


def _texts(features: Features) -> Strings:
    if isinstance(features, Strings):
        return features
    return Strings(*decimal.integers(_integers(features), 0, 0))


def _integers(features: torch.Tensor) -> numpy.ndarray:
    if features.dtype != torch.int64:
        raise UsageError(f"the features of a cross are strings or int64, not {features.dtype}")
    return features.reshape(-1).contiguous().numpy()
