"""Never two leaders at one instant, and none that publishes after it was deposed."""

import threading

import pytest

from semisync.cluster.zookeeper import memory
from semisync.cluster.zookeeper.client import BadVersion, Put, Unavailable
from semisync.cluster.zookeeper.generation import Generation, publish, read
from semisync.cluster.zookeeper.leader import Deposed, Election, boot_clock
from semisync.common.errors import BadInput
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow

ROOT = "/job"


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def tree():
    return memory.Tree()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def candidate(tree, clock):
    """Makes candidates that move by hand."""

    def make(name):
        made = Election(memory.Client(tree), ROOT, name, name, lease=10.0, clock=clock)
        made.client = made._client
        made.step()
        return made

    return make


@pytest.mark.parametrize(
    "value", [b"", b"somebody's", b'"epoch"', b"{}", b'{"epoch": 1, "id": "a", "lease": null}']
)
def test_a_node_that_no_leader_wrote_is_refused_in_a_sentence(store, value):
    client = store.client()
    election = Election(client, ROOT, "one", "one", lease=0.3)
    client.create(ROOT + "/leader", value)
    election.start()
    election.join(10.0)
    with pytest.raises(BadInput, match="the node /job/leader in ZooKeeper does not hold"):
        assert election.epoch
    election.resign()


def test_the_first_candidate_leads_and_the_second_waits(candidate):
    one, other = candidate("one"), candidate("other")
    one.step()
    other.step()
    assert (one.epoch, other.epoch) == (1, None)


def test_a_leader_that_renews_stays_and_one_that_does_not_ends_before_the_next_begins(
    candidate, clock
):
    one, other = candidate("one"), candidate("other")
    one.step()
    for _ in range(10):
        other.step()
        clock.now += 3
        assert one.epoch == 1
        one.step()
    other.step()
    clock.now += 9.9
    other.step()
    assert (one.epoch, other.epoch) == (1, None)
    clock.now += 0.2
    other.step()
    assert (one.epoch, other.epoch) == (None, None)
    clock.now += 5
    other.step()
    assert (one.epoch, other.epoch) == (None, 2)
    one.step()  # it learns that it was deposed
    assert one.epoch is None


def test_a_lease_counts_from_when_it_was_asked_for(candidate, clock):
    one = candidate("one")
    put = one.client.commit

    def slow(operations):
        put(operations)
        clock.now += 8  # the answer takes its time

    one.client.commit = slow
    one.step()
    clock.now += 2.1
    assert one.epoch is None


def test_a_leader_that_resigns_lets_the_next_begin_at_once(candidate):
    one, other = candidate("one"), candidate("other")
    one.step()
    one.resign()
    assert one.epoch is None
    other.step()
    assert other.epoch == 2


def test_only_the_leader_publishes(candidate, clock):
    one, other = candidate("one"), candidate("other")
    one.step()
    publish(one, ROOT, Generation(1, {"worker-0": "a"}, {"x": 1}))
    with pytest.raises(Deposed):
        publish(other, ROOT, Generation(2, {}, {}))
    seen = read(other.client, ROOT)
    assert seen == Generation(1, {"worker-0": "a"}, {"x": 1}, epoch=1, version=0)
    publish(one, ROOT, seen._replace(content={"x": 2}))
    assert read(other.client, ROOT).content == {"x": 2}
    with pytest.raises(BadVersion):
        publish(one, ROOT, seen._replace(content={"x": 3}))
    assert one.epoch == 1  # it was the document that had changed, not the leader


def test_a_leader_that_was_deposed_publishes_nothing_whatever_its_clock_says(candidate, clock):
    one, other = candidate("one"), candidate("other")
    one.step()
    publish(one, ROOT, Generation(1, {}, {"by": "one"}))
    other.step()
    clock.now += 16
    other.step()
    assert other.epoch == 2
    clock.now -= 16  # as if the first had slept between looking at its clock and writing
    assert one.epoch == 1
    with pytest.raises(Deposed):
        publish(one, ROOT, read(one.client, ROOT)._replace(content={"by": "a stale leader"}))
    assert read(other.client, ROOT).content == {"by": "one"}
    assert one.epoch is None


def test_a_leader_without_a_connection_leads_no_longer(candidate, clock):
    one, other = candidate("one"), candidate("other")
    one.step()
    one.client.cut()
    with pytest.raises(Unavailable):
        one.step()
    assert one.epoch is None
    other.step()
    clock.now += 15.1
    other.step()
    assert other.epoch == 2
    one.client.mend()
    one.step()
    assert one.epoch is None


def test_losing_the_session_does_not_give_the_lease_to_another(candidate):
    one, other = candidate("one"), candidate("other")
    one.step()
    one.client.expire()
    one.step()
    other.step()
    assert (one.epoch, other.epoch) == (1, None)


class Watched:
    """A candidate that writes down when it led, by the clock that all processes share."""

    def __init__(self, store, name, lease):
        self.client = store.client()
        self.election = Election(self.client, ROOT, name, name, lease=lease)
        self.times = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.election.start()
        self._thread.start()

    def _watch(self):
        while not self._done.wait(0.002):
            epoch, now = self.election.epoch, boot_clock()
            if epoch is not None and self.election.epoch == epoch:
                self.times.append((now, epoch))

    def terms(self):
        """(first, last) instant of each epoch."""
        found = {}
        for time, epoch in list(self.times):
            found[epoch] = found.get(epoch, (time, time))[0], time
        return found

    def stop(self):
        self.election.resign()
        self._done.set()
        self._thread.join()


def test_leaders_follow_one_another_while_sessions_end_and_candidates_leave(store):
    candidates = [Watched(store, "candidate {}".format(n), lease=0.3) for n in range(4)]

    def leader():
        leading = (c for c in candidates if c.times and c.times[-1][1] == c.election.epoch)
        return next(leading, None)

    for fault in ("expire", "resign", "expire", "resign"):
        chosen = until(leader)
        if fault == "expire":
            store.expire(chosen.client)
        else:
            candidates.remove(chosen)
            chosen.stop()
            candidates.append(Watched(store, "after {}".format(chosen.election._about), lease=0.3))
            candidates[-1].times = chosen.times + candidates[-1].times
    until(leader)
    for each in candidates:
        each.stop()
    terms = sorted((epoch, term) for c in candidates for epoch, term in c.terms().items())
    assert len(terms) == len({epoch for epoch, _ in terms}) >= 3
    for (_, (_, end)), (_, (begin, _)) in zip(terms, terms[1:]):
        assert end < begin


def test_two_would_be_leaders_publish_each_document_once(store):
    candidates = [Watched(store, "candidate {}".format(n), lease=0.3) for n in range(2)]
    client, numbers = store.client(), []
    until(lambda: any(c.election.epoch for c in candidates))
    client.create(ROOT + "/counter", b"0")

    def count(election):
        while len(numbers) < 40:
            try:
                value, stat = client.get(ROOT + "/counter")
                election.publish([Put(ROOT + "/counter", b"%d" % (int(value) + 1), stat.version)])
                numbers.append(int(value) + 1)
            except (Deposed, BadVersion):
                pass

    threads = [threading.Thread(target=count, args=(c.election,)) for c in candidates]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in candidates:
        each.stop()
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert client.get(ROOT + "/counter")[0] == b"%d" % len(numbers)
