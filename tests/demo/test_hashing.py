import hashlib

import numpy as np

from semisync.demo.data.hashing import hash_integers, hash_texts, splitmix64


def test_splitmix64_gives_the_published_sequence():
    # The generator's state grows by the golden gamma; first outputs for seed 1234567, as listed at
    # https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
    gamma = 0x9E3779B97F4A7C15
    states = np.array([(1234567 + i * gamma) % 2**64 for i in range(3)], np.uint64)
    assert splitmix64(states).tolist() == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_ids_of_texts_are_blake2b_of_field_and_value():
    expected = hashlib.blake2b(b"item\0\xc3\xa9t\xc3\xa9", digest_size=8).digest()
    assert hash_texts("item", ["été"])[0] == int.from_bytes(expected, "little", signed=True)


def test_ids_never_change():
    assert hash_texts("user", ["", "17"]).tolist() == [1528967860035751034, 6561974017232054619]
    assert hash_integers("user", np.array([0, 17, -1])).tolist() == [
        7786930724220638827,
        -8646698469239718862,
        6883212732803455092,
    ]


def test_equal_values_of_two_fields_have_different_ids():
    values = np.arange(1000)
    assert not set(hash_integers("a", values)) & set(hash_integers("b", values))
    texts = list(map(str, values))
    assert not set(hash_texts("a", texts)) & set(hash_texts("b", texts))
    # The border between field and value counts too.
    assert hash_texts("ab", ["c"])[0] != hash_texts("a", ["bc"])[0]


def test_ids_of_a_field_are_distinct_and_use_the_whole_range():
    for ids in (
        hash_integers("user", np.arange(100_000)),
        hash_texts("user", map(str, range(100_000))),
    ):
        assert ids.dtype == np.int64 and len(set(ids.tolist())) == 100_000
        share_of_set_bits = [float(np.mean(ids >> bit & 1)) for bit in range(64)]
        assert min(share_of_set_bits) > 0.49 and max(share_of_set_bits) < 0.51


def test_no_texts_have_no_ids():
    assert hash_texts("user", []).shape == (0,)
