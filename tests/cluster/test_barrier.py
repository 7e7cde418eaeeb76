"""All members of a generation go on together, or all learn who is missing."""

import threading

import pytest

from semisync.cluster.zookeeper import memory
from semisync.cluster.zookeeper.barrier import Broken, conduct, enter
from semisync.cluster.zookeeper.client import Unavailable
from semisync.cluster.zookeeper.generation import Generation
from semisync.cluster.zookeeper.leader import Deposed, Election
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow

ROOT = "/job"


class Party:
    """A leader, and members in threads."""

    def __init__(self, store, names, seconds):
        self._store, self._seconds = store, seconds
        self.generation = Generation(1, {name: name for name in names}, {})
        self.leader_client = store.client()
        self.election = Election(self.leader_client, ROOT, "leader", "leader", lease=30.0)
        self.election.start()
        until(lambda: self.election.epoch)
        self.said = {}

    def enter(self, name):
        """One member enters; what it met is in `said`."""
        client = self._store.client()

        def run():
            try:
                enter(client, ROOT, "start", self.generation, name, self._seconds)
                self.said[name] = "passed"
            except Broken as error:
                self.said[name] = error.missing
            except Unavailable:
                self.said[name] = "died"

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return client, thread

    def arrived(self):
        path = ROOT + "/barriers/start-1"
        return self.leader_client.children(path) if self.leader_client.stat(path) else []

    def conduct(self):
        client, generation = self.leader_client, self.generation
        conduct(self.election, client, ROOT, "start", generation, self._seconds)


def test_everybody_passes_when_the_last_has_come(store):
    party = Party(store, ["a", "b", "c"], 60)
    threads = [party.enter(name)[1] for name in ("a", "b")]
    conducting = threading.Thread(target=party.conduct, daemon=True)
    conducting.start()
    until(lambda: party.arrived() == ["a", "b"])
    assert party.said == {}
    threads.append(party.enter("c")[1])
    for thread in [*threads, conducting]:
        thread.join(30)
    assert party.said == {"a": "passed", "b": "passed", "c": "passed"}
    _, late = party.enter("a")  # again, as after a restart
    late.join(30)
    assert party.said["a"] == "passed"
    party.election.resign()


def test_at_the_deadline_everybody_learns_who_is_missing(store):
    party = Party(store, ["a", "b", "c", "d"], 1.0)
    _, thread = party.enter("b")
    until(lambda: party.arrived() == ["b"])
    with pytest.raises(Broken, match="barrier start: a, c, d did not come within 1 s"):
        party.conduct()
    thread.join(30)
    assert party.said == {"b": ["a", "c", "d"]}
    _, late = party.enter("a")
    late.join(30)
    assert party.said["a"] == ["a", "c", "d"]
    party.election.resign()


def test_a_member_that_died_has_not_arrived(store):
    party = Party(store, ["a", "b"], 1.0)
    client, _ = party.enter("a")
    until(lambda: party.arrived() == ["a"])
    client.close()
    with pytest.raises(Broken, match="a, b did not come"):
        party.conduct()
    party.election.resign()


def test_a_member_without_a_leader_says_who_is_missing_itself():
    tree = memory.Tree()
    generation = Generation(1, {"a": "a", "b": "b"}, {})
    with pytest.raises(Broken, match="b did not come"):
        enter(memory.Client(tree), ROOT, "start", generation, "a", 0.1)
    with pytest.raises(Broken, match="the leader did not come"):
        enter(memory.Client(tree), ROOT, "start", Generation(2, {"a": "a"}, {}), "a", 0.1)


def test_who_does_not_lead_does_not_conduct():
    client = memory.Client(memory.Tree())
    with pytest.raises(Deposed):
        election = Election(client, ROOT, "x", "x")
        conduct(election, client, ROOT, "start", Generation(1, {}, {}), 1.0)
