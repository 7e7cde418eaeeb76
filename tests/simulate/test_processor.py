"""Simulated time: events come in order, and processors share themselves as they should."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semisync.simulate.events import Clock, Lock, Processor

pytestmark = pytest.mark.one_tensorflow


def run(cores, demands):
    """When each of `demands`, (time, core seconds), is done, by its number; and the processor."""
    clock, done = Clock(), {}
    processor = Processor(clock, cores)
    for number, (at, seconds) in enumerate(demands):
        clock.after(at, processor.work, seconds, lambda n: done.update({n: clock.now}), number)
    clock.run(lambda: True)
    return done, processor


def test_one_demand_takes_its_own_time_however_many_cores_there_are():
    assert run(8, [(1.0, 2.0)])[0] == {0: pytest.approx(3.0)}


def test_two_demands_share_a_core_evenly_while_both_are_there():
    # From 1 to 3 each has half a core: the second, of 1 s, ends at 3; the first has .5 s left.
    done, _ = run(1, [(0.0, 2.5), (1.0, 1.0)])
    assert done == {0: pytest.approx(3.5), 1: pytest.approx(3.0)}


def test_processes_with_machines_of_their_own_do_not_wait():
    assert run(float("inf"), [(0, 1), (0, 1), (0, 1)])[0] == {0: 1, 1: 1, 2: 1}


def in_small_steps(cores, demands, step=1e-3):
    """The same by advancing time in small steps."""
    left, done, now = {}, {}, 0.0
    waiting = sorted(range(len(demands)), key=lambda n: demands[n][0])
    while waiting or left:
        while waiting and demands[waiting[0]][0] <= now + 1e-12:
            number = waiting.pop(0)
            left[number] = demands[number][1]
        rate = min(1.0, cores / len(left)) if left else 0.0
        now += step
        for number in list(left):
            left[number] -= rate * step
            if left[number] <= 0:
                done[number] = now
                del left[number]
    return done


instants = st.integers(0, 40).map(lambda n: n / 20)
sizes = st.integers(1, 40).map(lambda n: n / 20)


@given(st.integers(1, 3), st.lists(st.tuples(instants, sizes), min_size=1, max_size=6))
@settings(max_examples=30, deadline=None)
def test_any_demands_end_as_in_small_steps_of_time(cores, demands):
    done, processor = run(cores, demands)
    expected = in_small_steps(cores, demands)
    assert done == {number: pytest.approx(at, abs=0.02) for number, at in expected.items()}
    assert processor.busy == pytest.approx(sum(seconds for _, seconds in demands))


def test_a_lock_lets_one_after_another_through_in_the_order_of_coming():
    clock, done = Clock(), []
    lock = Lock(Processor(clock, 4).work, 1)
    for name, seconds in (("a", 3.0), ("b", 1.0), ("c", 1.0)):
        lock.work(seconds, lambda n: done.append((n, clock.now)), name)
    clock.run(lambda: True)
    assert done == [("a", 3.0), ("b", 4.0), ("c", 5.0)]
