"""A position names the rows that are left, whatever happened before: no row is lost or repeated."""

import itertools
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrate.data.position import Division, Left, Position, Share, Taken, left_at
from migrate.data.shuffling import Order, Shuffle
from semisync.common.errors import BadInput

BLOCKS = st.lists(st.integers(0, 40), max_size=12)
SHUFFLES = st.one_of(st.none(), st.builds(Shuffle, st.integers(0, 99), st.integers(1, 90)))
RUNS = st.lists(  # the ranks, the batch size and how many batches of each until it is stopped
    st.tuples(st.integers(1, 5), st.integers(1, 9), st.integers(0, 6)), max_size=5
)
LAST = st.sampled_from(["drop", "pad", "keep"])


def rows_of(ranges):
    return [row for start, stop in ranges for row in range(start, stop)]


@settings(deadline=None)
@given(BLOCKS, SHUFFLES, st.integers(0, 3))
def test_the_order_holds_each_row_once(blocks, shuffle, epoch):
    order = Order(blocks, shuffle, epoch)
    firsts = [0, *itertools.accumulate(blocks)]
    found = []
    for number, window in enumerate(order.windows):
        rows = [firsts[block] + k for block in window.blocks for k in range(blocks[block])]
        places = order.permutation(number)
        found += rows if places is None else [rows[place] for place in places]
        assert len(found) == window.start + window.rows
    assert sorted(found) == list(range(sum(blocks)))
    assert (found == sorted(found)) or shuffle is not None


def test_an_epoch_is_shuffled_anew_and_always_alike():
    def order(seed, epoch):
        order = Order([100] * 30, Shuffle(seed, 500), epoch)
        return [window.blocks for window in order.windows], order.permutation(0).tolist()

    assert order(1, 0) == order(1, 0)
    assert order(1, 0)[0] != order(1, 1)[0] and order(1, 0)[1] != order(1, 1)[1]
    assert order(1, 0)[0] != order(2, 0)[0]


def test_a_state_saved_by_any_version_of_numpy_names_the_same_rows():
    order = Order([10] * 4, Shuffle(7, 20), 3)
    assert [window.blocks for window in order.windows] == [(2, 1), (0, 3)]
    assert order.permutation(0).tolist()[:8] == [13, 1, 14, 3, 4, 10, 12, 9]


def whole_of(division, ranks):
    """The rows of each batch that count."""
    batches = [(rank, number) for number in range(division.batches) for rank in range(ranks)]
    return [rows_of(division.batch(*one))[: division.share(*one).rows] for one in batches]


def test_a_rank_that_is_left_without_a_row_gets_one_of_the_same_step_that_does_not_count():
    division = Division(Left([(0, 5)]), 3, 1, True, "keep")
    assert [division.share(rank, 1) for rank in range(3)] == [Share(0, 2), Share(1, 2), Share(1, 2)]
    assert [division.batch(rank, 1) for rank in range(3)] == [[(3, 4)], [(3, 4)], [(4, 5)]]
    padded = Division(Left([(0, 5)]), 3, 1, True, "pad")
    assert padded.batch(0, 1) == []


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 300), st.booleans(), LAST, RUNS)
def test_no_row_is_lost_or_repeated_over_stops_and_other_numbers_of_ranks(
    rows, in_order, last, runs
):
    position, seen = Position(), []
    for ranks, size, stop in runs:
        left = left_at(position, rows, in_order)
        division = Division(left, ranks, size, in_order, last)
        taken = min(stop, left.rows // (ranks * size))
        for number in range(taken):
            parts = [rows_of(division.batch(rank, number)) for rank in range(ranks)]
            assert [len(part) for part in parts] == [size] * ranks
            seen += itertools.chain(*parts)
        position = Position(0, (*position.taken, Taken(ranks, size, taken)))
        position = Position.from_json(json.loads(json.dumps(position.to_json())))
    left = left_at(position, rows, in_order)
    rest = whole_of(Division(left, 3, 4, in_order, "pad"), 3)
    assert rest == whole_of(Division(left, 3, 4, in_order, "keep"), 3)
    assert max(map(len, rest), default=0) <= 4
    assert sorted(seen + list(itertools.chain(*rest))) == list(range(rows))
    if in_order:
        assert seen == sorted(seen)


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(1, 6), st.integers(1, 9), st.booleans(), LAST)
def test_every_rank_has_as_many_batches_and_in_order_they_are_the_rows_one_after_the_other(
    rows, ranks, size, in_order, last
):
    whole = Division(left_at(Position(), rows, in_order), ranks, size, in_order, last)
    all_in = rows // (ranks * size)
    assert whole.batches == (all_in if last == "drop" else -(-rows // (ranks * size)))
    if in_order:
        batches = whole_of(whole, ranks)
        assert list(itertools.chain(*batches)) == list(range(sum(map(len, batches))))


def test_what_was_dropped_is_used_when_smaller_batches_follow():
    position = Position(0, (Taken(2, 10, 4),))  # of 95 rows 15 were too few for a fifth batch
    left = left_at(position, 95, in_order=False)
    assert rows_of(left.part(0, left.rows)) == list(range(80, 95))


@pytest.mark.parametrize(
    "saved", [None, 3, [0], [0, [[1, 2]]], [-1, []], [0, [[0, 1, 1]]], [0, [[1, 1, -1]]], ["x", []]]
)
def test_a_position_that_is_none_is_refused(saved):
    with pytest.raises(BadInput, match="is not a position"):
        Position.from_json(saved)


def test_a_position_beyond_the_end_is_refused():
    with pytest.raises(BadInput, match="took 6 batches of 10 rows, but only 5 were left"):
        left_at(Position(0, (Taken(2, 10, 6),)), 119, in_order=True)
