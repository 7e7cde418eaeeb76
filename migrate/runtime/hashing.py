"""Hash buckets of strings and integers, bit for bit TensorFlow's.

A bucket is the remainder of the hash as an unsigned number. `categorical_column_with_hash_bucket`
hashes integers as their decimal text: AsString, then StringToHashBucketFast;
`integers_to_hash_bucket` is both at once.
"""

from __future__ import annotations

from typing import Sequence

import numpy
import torch

from migrate.runtime.strings import Strings
from semisync.common.compiled import decimal, farmhash, other_hashes
from semisync.common.errors import UsageError


def fingerprint64(strings: Strings) -> torch.Tensor:
    """FarmHash's Fingerprint64 of each string; int64 with the bits of the unsigned hash."""
    hashes = farmhash.fingerprints(strings.data, strings.offsets)
    return _tensor(hashes.view(numpy.int64), strings.shape)


def fingerprint_cat64(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """FingerprintCat64 of two int64 tensors of fingerprints, broadcast together."""
    one, other = torch.broadcast_tensors(first, second)
    flat = (_flat(one).view(numpy.uint64), _flat(other).view(numpy.uint64))
    return _tensor(farmhash.concatenated_pairs(*flat).view(numpy.int64), one.shape)


def string_to_hash_bucket_fast(strings: Strings, num_buckets: int) -> torch.Tensor:
    """TensorFlow's StringToHashBucketFast: Fingerprint64 modulo `num_buckets`, int64."""
    buckets = farmhash.buckets(strings.data, strings.offsets, _count(num_buckets))
    return _tensor(buckets, strings.shape)


def string_to_hash_bucket(strings: Strings, num_buckets: int) -> torch.Tensor:
    """TensorFlow's StringToHashBucket: Hash64 modulo `num_buckets`, int64."""
    buckets = other_hashes.hash64_buckets(strings.data, strings.offsets, _count(num_buckets))
    return _tensor(buckets, strings.shape)


def string_to_hash_bucket_strong(
    strings: Strings, num_buckets: int, key: Sequence[int]
) -> torch.Tensor:
    """TensorFlow's StringToHashBucketStrong: SipHash with a key of two integers, int64."""
    if len(key) != 2:
        raise UsageError(f"the key of a strong hash is two integers, not {len(key)}")
    first, second = (numpy.uint64(int(part) & 0xFFFFFFFFFFFFFFFF) for part in key)
    buckets = other_hashes.sip_buckets(
        strings.data, strings.offsets, first, second, _count(num_buckets)
    )
    return _tensor(buckets, strings.shape)


def integers_to_hash_bucket(values: torch.Tensor, num_buckets: int) -> torch.Tensor:
    """string_to_hash_bucket_fast(as_string(values), num_buckets), without making the strings."""
    if values.is_floating_point() or values.is_complex() or values.dtype == torch.bool:
        raise UsageError(f"integers were expected, not {values.dtype}")
    buckets = decimal.buckets(_flat(values.to(torch.int64)), _count(num_buckets))
    return _tensor(buckets, values.shape).to(values.device)


def _count(num_buckets: int) -> numpy.uint64:
    if num_buckets < 1:
        raise UsageError(f"num_buckets is {num_buckets}; at least 1 was expected")
    return numpy.uint64(num_buckets)


def _flat(values: torch.Tensor) -> numpy.ndarray:
    return values.reshape(-1).cpu().contiguous().numpy()


def _tensor(values: numpy.ndarray, shape: Sequence[int]) -> torch.Tensor:
    tensor = torch.from_numpy(values)
    return tensor if len(shape) == 1 else tensor.reshape(tuple(shape))
