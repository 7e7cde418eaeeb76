"""Every mode trains the same rows equally often, whichever worker takes a batch."""

import collections

import numpy as np
import pytest

from semisync.demo.data import schedule


def times_trained(count, batch, batches):
    spec = {"batch": batch, "batches": batches}
    seen = collections.Counter()
    for number in range(batches):
        rows = schedule.rows(number, count, spec)
        assert rows.stop - rows.start == min(batch, count)
        seen.update(range(count)[rows])
    return seen


@pytest.mark.parametrize("count, batch, batches", [(1200, 10, 120), (1203, 10, 120)])
def test_a_log_as_long_as_the_training_is_read_once(count, batch, batches):
    seen = times_trained(count, batch, batches)
    assert set(seen) == set(range(count - batch * batches, count)) and set(seen.values()) == {1}


def test_a_short_log_is_read_several_times():
    assert set(times_trained(400, 10, 120).values()) == {3}


def test_of_a_long_log_the_latest_rows_are_read():
    assert set(times_trained(5000, 10, 120)) == set(range(3800, 5000))


def test_a_log_of_less_than_a_batch_is_one_batch():
    assert set(times_trained(7, 10, 4).values()) == {4}


def test_batches_come_in_time_order():
    spec = {"batch": 10, "batches": 120}
    starts = [schedule.rows(number, 1200, spec).start for number in range(120)]
    assert starts == sorted(starts)


def test_the_slow_batches_are_the_same_in_every_process():
    spec = {"batches": 1000, "slow_share": 0.3, "slow_factor": 5, "pause": 0.01}
    pauses = schedule.pauses(spec)
    np.testing.assert_array_equal(pauses, schedule.pauses(spec))
    assert np.unique(pauses).tolist() == pytest.approx([0.01, 0.05])
    assert np.mean(pauses > 0.02) == pytest.approx(0.3, abs=0.05)
