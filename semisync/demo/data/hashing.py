"""64-bit ids of (field, value) pairs, the same in every process, Python and numpy.

    texts     the first 8 bytes, little-endian, of BLAKE2b-64(field, one zero byte, value), in UTF-8
    integers  splitmix64's finaliser (Steele, Lea & Flood 2014) of value xor the hash of (field, "")

The field is part of the hashed text, so that equal values of two fields have different ids; within
a field integers never collide, since the finaliser is a bijection. Ids are int64 and so can be
negative, as the raw hash features of production jobs are.
"""

import hashlib
from typing import Iterable, List

import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix64(states: np.ndarray) -> np.ndarray:
    """The splitmix64 generator's next output for each state; uint64 [n] to uint64 [n]."""
    z = np.asarray(states, np.uint64) + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash_texts(field: str, values: Iterable[str]) -> np.ndarray:
    """Ids of texts in a field; int64 [len(values)]."""
    keyed = hashlib.blake2b(field.encode() + b"\0", digest_size=8)
    digests: List[bytes] = []
    for value in values:
        state = keyed.copy()
        state.update(value.encode())
        digests.append(state.digest())
    return np.frombuffer(b"".join(digests), "<i8").astype(np.int64)


def hash_integers(field: str, values: np.ndarray) -> np.ndarray:
    """Ids of integers in a field; int64 [n] to int64 [n]."""
    salt = hash_texts(field, [""]).view(np.uint64)
    return splitmix64(np.asarray(values, np.int64).view(np.uint64) ^ salt).view(np.int64)
