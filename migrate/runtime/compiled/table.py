"""A hash table from keys to the numbers of their rows: open addressing, at most half full.

What a search compares stands in the slots themselves, so that a key is found with one access to
memory, or two for a string: one for the slot, one for its bytes. A slot of an integer is the key
and the row; of a string its hash, the row, the offset of its bytes and their number. A free slot
has the row -1.
Source of the slots of integers: Fibonacci hashing, Knuth, The Art of Computer Programming 3, 6.4.
"""

from __future__ import annotations

import numpy

from migrate.runtime.compiled.farmhash import fingerprint
from migrate.runtime.compiled.jit import address, compiled, inlined, u
from migrate.runtime.compiled.spans import same

_KEY, _ROW, _OFFSET, _LENGTH = 0, 1, 2, 3


@inlined
def _free(count, words):
    """Slots for `count` keys, a power of two of them: int64 [slots, words]."""
    size = 2
    while size < 2 * count:
        size *= 2
    return numpy.full((size, words), -1, numpy.int64)


@inlined
def _find_integer(slots, key):
    """The slot of an integer, or the free one where it would stand."""
    mask = u(len(slots) - 1)
    product = u(key) * u(0x9E3779B97F4A7C15)
    at = (product ^ (product >> u(32))) & mask
    while slots[at, _ROW] >= 0 and slots[at, _KEY] != key:
        at = (at + u(1)) & mask
    return at


@compiled
def build_integers(keys):
    """The slots of int64 [n] keys, and the row in which each key stands first."""
    slots, first = _free(len(keys), 2), numpy.empty(len(keys), numpy.int64)
    for row in range(len(keys)):
        at = _find_integer(slots, keys[row])
        if slots[at, _ROW] < 0:
            slots[at, _KEY] = keys[row]
            slots[at, _ROW] = row
        first[row] = slots[at, _ROW]
    return slots, first


@compiled
def find_integers(slots, missing, wanted):
    """The row of each wanted key, `missing` where there is none; int64 [n]."""
    out = numpy.empty(len(wanted), numpy.int64)
    for i in range(len(wanted)):
        row = slots[_find_integer(slots, wanted[i]), _ROW]
        out[i] = row if row >= 0 else missing
    return out


@compiled
def add_integers(slots, keys, row):
    """Adds int64 keys [n] as the rows from `row` on, up to one that has a row; returns how many.

    At least half of the slots stay free.
    """
    for i in range(len(keys)):
        at = _find_integer(slots, keys[i])
        if slots[at, _ROW] >= 0:
            return i
        slots[at, _KEY] = keys[i]
        slots[at, _ROW] = row + i
    return len(keys)


@compiled
def unique_integers(keys):
    """The distinct int64 keys as they first occur; their number for each key [n]; their counts."""
    slots = _free(len(keys), 2)
    unique, numbers = numpy.empty(len(keys), numpy.int64), numpy.empty(len(keys), numpy.int64)
    counts = numpy.zeros(len(keys), numpy.int64)
    found = 0
    for i in range(len(keys)):
        at = _find_integer(slots, keys[i])
        if slots[at, _ROW] < 0:
            slots[at, _KEY] = keys[i]
            slots[at, _ROW] = found
            unique[found] = keys[i]
            found += 1
        numbers[i] = slots[at, _ROW]
        counts[numbers[i]] += 1
    return unique[:found].copy(), numbers, counts[:found].copy()


@compiled
def sum_by_key(keys, values):
    """The distinct int64 keys as they first occur, and the sum of the values [n, width] of each, in
    their order."""
    slots = _free(len(keys), 2)
    unique, sums = numpy.empty(len(keys), numpy.int64), numpy.empty_like(values)
    found = 0
    for i in range(len(keys)):
        at = _find_integer(slots, keys[i])
        if slots[at, _ROW] < 0:
            slots[at, _KEY] = keys[i]
            slots[at, _ROW] = found
            unique[found] = keys[i]
            for k in range(values.shape[1]):
                sums[found, k] = values[i, k]
            found += 1
        else:
            row = slots[at, _ROW]
            for k in range(values.shape[1]):
                sums[row, k] += values[i, k]
    return unique[:found], sums[:found]


@inlined
def _find_string(slots, known, text, length, hashed):
    """The slot of the string at the address `text`, or the free one where it would stand.

    Args:
        known: the address of the bytes of all keys.
    """
    mask, key = u(len(slots) - 1), numpy.int64(hashed)
    at = hashed & mask
    while slots[at, _ROW] >= 0:
        alike = slots[at, _KEY] == key and slots[at, _LENGTH] == length
        if alike and same(known + slots[at, _OFFSET], text, length):
            break
        at = (at + u(1)) & mask
    return at


@compiled
def build_strings(data, offsets):
    """As `build_integers`, of strings."""
    count, known = len(offsets) - 1, address(data)
    slots, first = _free(count, 4), numpy.empty(count, numpy.int64)
    for row in range(count):
        text, length = known + offsets[row], offsets[row + 1] - offsets[row]
        hashed = fingerprint(text, length)
        at = _find_string(slots, known, text, length, hashed)
        if slots[at, _ROW] < 0:
            slots[at, _KEY] = hashed
            slots[at, _ROW] = row
            slots[at, _OFFSET] = offsets[row]
            slots[at, _LENGTH] = length
        first[row] = slots[at, _ROW]
    return slots, first


@compiled
def find_strings(slots, data, missing, text, bounds):
    """The row of each string of `text` among the keys' bytes, or `missing`."""
    out = numpy.empty(len(bounds) - 1, numpy.int64)
    known, asked = address(data), address(text)
    for i in range(len(out)):
        start, length = asked + bounds[i], bounds[i + 1] - bounds[i]
        at = _find_string(slots, known, start, length, fingerprint(start, length))
        out[i] = slots[at, _ROW] if slots[at, _ROW] >= 0 else missing
    return out
