"""Hash buckets are TensorFlow's at every length, as unsigned remainders."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies

from migrate import runtime
from migrate.runtime import Strings
from semisync.common.errors import UsageError
from tests.model.runtime.same import QUICK, TEXTS, assert_same, objects

ALL_BITS = 2**63 - 1
COUNTS = strategies.sampled_from([1, 2, 7, 10**6, 2**40 + 1, ALL_BITS])
INT64 = strategies.integers(-(2**63), 2**63 - 1)


def test_every_length_up_to_400_bytes_hashes_as_in_tensorflow(peer):
    data = np.random.default_rng(0).bytes(400)
    strings = objects([data[:length] for length in range(401)])
    ours = runtime.string_to_hash_bucket_fast(Strings.of(strings), ALL_BITS)
    assert_same([ours], peer.ask("hash_fast", strings=strings, attr_buckets=ALL_BITS))


@QUICK
@given(values=strategies.lists(TEXTS, max_size=20), count=COUNTS)
def test_strings_hash_as_in_tensorflow(peer, values, count):
    strings = objects(values)
    ours = Strings.of(strings)
    attributes = {"strings": strings, "attr_buckets": count}
    fast, old = (peer.ask(kind, **attributes) for kind in ("hash_fast", "hash_old"))
    assert_same([runtime.string_to_hash_bucket_fast(ours, count)], fast)
    assert_same([runtime.string_to_hash_bucket(ours, count)], old)


@QUICK
@given(values=strategies.lists(TEXTS, max_size=20), key=strategies.tuples(INT64, INT64))
def test_a_strong_hash_depends_on_its_key_as_in_tensorflow(peer, values, key):
    strings = objects(values)
    ours = runtime.string_to_hash_bucket_strong(Strings.of(strings), ALL_BITS, key)
    attributes = {"attr_buckets": ALL_BITS, "attr_key": list(key)}
    assert_same([ours], peer.ask("hash_strong", strings=strings, **attributes))


@QUICK
@given(values=strategies.lists(INT64, max_size=20), count=COUNTS)
def test_integers_hash_as_their_decimal_text(peer, values, count):
    numbers = np.array(values, np.int64)
    ours = runtime.integers_to_hash_bucket(torch.from_numpy(numbers), count)
    assert_same([ours], peer.ask("hash_integers", numbers=numbers, attr_buckets=count))
    text = runtime.as_string(torch.from_numpy(numbers))
    assert torch.equal(ours, runtime.string_to_hash_bucket_fast(text, count))


def test_buckets_keep_the_shape_of_any_integers():
    numbers = torch.tensor([[1, -1], [0, 7]], dtype=torch.int32)
    buckets = runtime.integers_to_hash_bucket(numbers.t(), 100)
    assert buckets.shape == (2, 2)
    assert buckets[0, 1] == runtime.integers_to_hash_bucket(torch.tensor([0]), 100)


def test_fingerprints_are_concatenated_in_order():
    a, b = runtime.fingerprint64(Strings.of(["a", "b"]))
    assert runtime.fingerprint_cat64(a, b) != runtime.fingerprint_cat64(b, a)
    assert runtime.fingerprint_cat64(a[None], torch.stack([a, b])).shape == (2,)


def test_no_buckets_floats_and_short_keys_are_refused():
    with pytest.raises(UsageError, match="num_buckets is 0"):
        runtime.string_to_hash_bucket_fast(Strings.of(["a"]), 0)
    with pytest.raises(UsageError, match="integers were expected"):
        runtime.integers_to_hash_bucket(torch.tensor([1.5]), 10)
    with pytest.raises(UsageError, match="two integers"):
        runtime.string_to_hash_bucket_strong(Strings.of(["a"]), 10, [1])
