"""The command of one launcher, with its starts and ends."""

import pytest

from semisync.cluster import record
from semisync.cluster.launch import running
from semisync.cluster.launch.order import Order
from semisync.cluster.zookeeper.generation import Generation

pytestmark = pytest.mark.one_tensorflow

SHAPE = record.Shape(ps=1, workers=2)


class Fails:
    """A child that has failed at once."""

    code = 1

    def __init__(self, *order):
        pass

    def stop(self, grace):
        pass


class Said(list):
    say = pass_on = list.append


def test_a_command_that_fails_ever_again_is_started_again_as_often_as_it_may(monkeypatch):
    monkeypatch.setattr(running, "Child", Fails)
    monkeypatch.setattr(running, "LONGEST_REST", 0.0)
    order = Order(SHAPE, "worker", 1, ["false"], 1100, 60.0, 5.0, 60.0, "127.0.0.1")
    addresses = dict.fromkeys(SHAPE.places, "127.0.0.1:1")
    content = dict(record.content(SHAPE, addresses, {}), started=[])
    command, generation = running.Running(order, Said(), lambda: None), Generation(1, {}, content)
    ends = [command.follow("worker-1", generation) for _ in range(1101)]
    command.stop()
    assert ends[:-1] == [None] * 1100
    assert "ended with exit code 1 after 1101 starts" in ends[-1].why
