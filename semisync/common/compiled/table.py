"""A hash table from keys to the numbers of their rows: open addressing, at most half full.

The slots themselves hold the compared keys, so that a key is found with one access to
memory, or two for a string: one for the slot, one for its bytes. A slot of an integer is the key
and the row; of a string its hash, the row, the offset of its bytes and their number. A free slot
has the row -1.
Source of the slots of integers: Fibonacci hashing, Knuth, The Art of Computer Programming 3, 6.4.
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.farmhash import fingerprint
from semisync.common.compiled.jit import address, compiled, inlined, u
from semisync.common.compiled.spans import same

KEY, ROW, _OFFSET, _LENGTH = 0, 1, 2, 3


@inlined
def slots_for(count):
    """How many slots `count` keys have: a power of two."""
    size = 2
    while size < 2 * count:
        size *= 2
    return size


@inlined
def free_slots(count, words):
    """Slots for `count` keys: int64 [slots, words]."""
    return numpy.full((slots_for(count), words), -1, numpy.int64)


@inlined
def find_integer(slots, key):
    """The slot of an integer, or the free one where it would stand."""
    mask = u(len(slots) - 1)
    # 2**64 / the golden ratio; the upper half of the product, the better mixed one, is folded in.
    product = u(key) * u(0x9E3779B97F4A7C15)
    at = (product ^ (product >> u(32))) & mask
    while slots[at, ROW] >= 0 and slots[at, KEY] != key:
        at = (at + u(1)) & mask
    return at


@compiled
def build_integers(keys):
    """The slots of int64 [n] keys, and the row in which each key stands first."""
    slots, first = free_slots(len(keys), 2), numpy.empty(len(keys), numpy.int64)
    for row in range(len(keys)):
        at = find_integer(slots, keys[row])
        if slots[at, ROW] < 0:
            slots[at, KEY] = keys[row]
            slots[at, ROW] = row
        first[row] = slots[at, ROW]
    return slots, first


@compiled
def find_integers(slots, missing, wanted):
    """The row of each wanted key, `missing` where there is none; int64 [n]."""
    out = numpy.empty(len(wanted), numpy.int64)
    for i in range(len(wanted)):
        row = slots[find_integer(slots, wanted[i]), ROW]
        out[i] = row if row >= 0 else missing
    return out


@compiled
def add_integers(slots, keys, row):
    """Adds int64 keys [n] as the rows from `row` on, up to one that has a row; returns how many.

    The caller sees to it that half of the slots stay free.
    """
    for i in range(len(keys)):
        at = find_integer(slots, keys[i])
        if slots[at, ROW] >= 0:
            return i
        slots[at, KEY] = keys[i]
        slots[at, ROW] = row + i
    return len(keys)


@compiled
def unique_integers(keys):
    """The distinct int64 keys as they first occur; their number for each key [n]; their counts."""
    slots = free_slots(len(keys), 2)
    unique, numbers = numpy.empty(len(keys), numpy.int64), numpy.empty(len(keys), numpy.int64)
    counts = numpy.zeros(len(keys), numpy.int64)
    found = 0
    for i in range(len(keys)):
        at = find_integer(slots, keys[i])
        if slots[at, ROW] < 0:
            slots[at, KEY] = keys[i]
            slots[at, ROW] = found
            unique[found] = keys[i]
            found += 1
        numbers[i] = slots[at, ROW]
        counts[numbers[i]] += 1
    return unique[:found].copy(), numbers, counts[:found].copy()


@inlined
def _find_string(slots, known, text, length, hashed):
    """The slot of the string at the address `text`, or the free one where it would stand.

    Args:
        known: the address of the bytes of all keys.
    """
    mask, key = u(len(slots) - 1), numpy.int64(hashed)
    at = hashed & mask
    while slots[at, ROW] >= 0:
        alike = slots[at, KEY] == key and slots[at, _LENGTH] == length
        if alike and same(known + slots[at, _OFFSET], text, length):
            break
        at = (at + u(1)) & mask
    return at


@compiled
def build_strings(data, offsets):
    """The slots of string keys, and the row in which each key stands first."""
    count, known = len(offsets) - 1, address(data)
    slots, first = free_slots(count, 4), numpy.empty(count, numpy.int64)
    for row in range(count):
        text, length = known + offsets[row], offsets[row + 1] - offsets[row]
        hashed = fingerprint(text, length)
        at = _find_string(slots, known, text, length, hashed)
        if slots[at, ROW] < 0:
            slots[at, KEY] = hashed
            slots[at, ROW] = row
            slots[at, _OFFSET] = offsets[row]
            slots[at, _LENGTH] = length
        first[row] = slots[at, ROW]
    return slots, first


@compiled
def find_strings(slots, data, missing, text, bounds):
    """The row of each string of `text` among the keys' bytes, or `missing`."""
    out = numpy.empty(len(bounds) - 1, numpy.int64)
    known, asked = address(data), address(text)
    for i in range(len(out)):
        start, length = asked + bounds[i], bounds[i + 1] - bounds[i]
        at = _find_string(slots, known, start, length, fingerprint(start, length))
        out[i] = slots[at, ROW] if slots[at, ROW] >= 0 else missing
    return out
