"""Processes meet in a store that has what earlier starts left."""

import threading
from datetime import timedelta

import pytest
import torch.distributed as dist

from migrate.launcher import Rank
from migrate.training.distributed.processes import meet
from semisync.common.errors import SemisyncError

SIZE = 3


@pytest.fixture
def store():
    return dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)


def client(store):
    """A connection of its own to the same store."""
    return dist.TCPStore("localhost", store.port, timeout=timedelta(seconds=60))


def start(store, numbers, deadline=60):
    """What each of the ranks has found, once all of them have ended: a store or an error."""
    found = {}

    def run(number):
        try:
            found[number] = meet(client(store), Rank(number, SIZE, deadline))
        except (SemisyncError, dist.DistError) as error:
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_each_start_has_a_part_of_its_own(store):
    for _ in range(3):
        first, *others = start(store, (2, 1, 0)).values()
        assert not first.check(["seen"])  # of an earlier start
        first.set("seen", "")
        assert all(other.check(["seen"]) for other in others)


def test_one_that_does_not_come_is_named_and_the_next_start_does_not_mind(store):
    found = start(store, (0, 1), deadline=3)
    assert "process 2 of 3 did not come in 3 s" in str(found[0])
    assert isinstance(found[1], dist.Store)
    assert isinstance(start(store, (1, 2), deadline=1)[2], dist.DistError)  # nobody answers
    stores = start(store, (1, 0, 2)).values()
    assert all(isinstance(each, dist.Store) for each in stores)
