"""Which chunk comes from whom, and that a root gives each chunk once."""

import random

import pytest

from semisync.cluster.files.choosing import any_of, choose
from semisync.cluster.files.leases import LONGEST, SILENCE, Leases

DICE = random.Random(0)


class Source:
    def __init__(self, have, is_root=False, free=True):
        self.have, self.is_root, self.free = have, is_root, free


def test_what_a_follower_has_comes_from_a_follower():
    root, follower = Source(0b1111, is_root=True), Source(0b0110)
    chosen = {choose(0b0110, [root, follower], DICE) for _ in range(50)}
    assert chosen == {(follower, 1), (follower, 2)}


def test_a_root_is_asked_first_and_only_for_what_no_follower_has():
    root, follower = Source(0b1111, is_root=True), Source(0b0110)
    assert {choose(0b1111, [follower, root], DICE) for _ in range(50)} == {(root, 0), (root, 3)}
    root.free = False
    assert choose(0b1111, [follower, root], DICE)[0] is follower


def test_a_root_is_not_asked_for_what_a_busy_follower_has():
    root, busy = Source(0b11, is_root=True), Source(0b01, free=False)
    assert choose(0b01, [root, busy], DICE) is None
    assert choose(0b11, [root, busy], DICE) == (root, 1)


def test_nothing_is_chosen_where_nobody_has_it_or_nothing_is_missing():
    assert choose(0b100, [Source(0b11), Source(0b11, is_root=True)], DICE) is None
    assert choose(0, [Source(0b11)], DICE) is None


def test_every_chunk_may_be_chosen():
    assert {any_of(0b101001, DICE) for _ in range(500)} == {0, 3, 5}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def leases(clock):
    return Leases(clock)


def test_a_chunk_is_given_to_one_follower_and_to_that_one_again(leases):
    assert leases.grant(3, "one")
    assert not leases.grant(3, "two")
    assert leases.grant(3, "one")
    assert leases.grant(4, "two")
    assert leases.on_lease("three") == 0b11000
    assert leases.on_lease("one") == 0b10000


def test_a_follower_that_falls_silent_loses_its_leases(leases, clock):
    leases.grant(3, "one")
    for _ in range(4):
        clock.now += SILENCE - 1
        leases.hear("one")
        assert not leases.grant(3, "two")
    clock.now += SILENCE
    assert leases.on_lease("two") == 0
    assert leases.grant(3, "two")


def test_a_follower_that_nobody_reaches_keeps_a_chunk_for_a_while_and_each_time_longer(
    leases, clock
):
    for turn, holder in enumerate(("one", "two", "three")):
        assert leases.grant(3, holder)
        began = clock.now
        while leases.on_lease("other"):
            clock.now += 1
            leases.hear(holder)
        assert clock.now - began == LONGEST * 2**turn
