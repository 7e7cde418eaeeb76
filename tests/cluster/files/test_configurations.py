"""Versions of a configuration come in order, each once, whoever publishes and looks where."""

import functools
import threading
import time

import pytest

from semisync.cluster import files
from semisync.cluster.files import configurations as module
from semisync.cluster.files.configurations import Configurations, Conflict
from semisync.cluster.zookeeper.leader import Deposed, Election
from semisync.common.errors import BadInput, UsageError
from tests.cluster.files.http import KEY, ask


@pytest.fixture
def configurations(store):
    return Configurations(store.client(), store.root)


def test_every_watcher_sees_every_version_in_order_and_once(store, configurations):
    seen = [[], [], []]

    def watch(into):
        own, version = Configurations(store.client(), store.root), 0
        while version < 20:
            found = own.next("plan", after=version, seconds=60)
            version = found.version
            into.append(found)

    watchers = [threading.Thread(target=watch, args=(into,)) for into in seen]
    for one in watchers:
        one.start()
    for version in range(20):
        assert configurations.publish("plan", {"rate": version}, after=version) == version + 1
    for one in watchers:
        one.join(60)
    assert seen == [[(n + 1, {"rate": n}) for n in range(20)]] * 3


def test_of_two_that_publish_after_the_same_version_one_does(store, configurations):
    others = [Configurations(store.client(), store.root) for _ in range(4)]
    done = []

    def publish(one):
        try:
            done.append(one.publish("plan", {}, after=0))
        except Conflict as conflict:
            done.append((conflict.latest, str(conflict)))

    threads = [threading.Thread(target=publish, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sentence = "plan is at version 1, not 0: read that one, then publish after it"
    assert sorted(map(str, done)) == sorted(["1"] + [str((1, sentence))] * 3)
    with pytest.raises(Conflict):
        configurations.publish("plan", {}, after=2)


def test_only_the_leader_publishes_under_an_election(store, configurations):
    leader, other = (
        Election(store.client(), store.root, name, name, lease=30.0) for name in ("one", "two")
    )
    leader.step()
    leader.step()
    other.step()
    with pytest.raises(Deposed):
        configurations.publish("plan", {"by": "two"}, 0, election=other)
    assert configurations.publish("plan", {"by": "one"}, 0, election=leader) == 1
    leader.resign()
    other.step()
    with pytest.raises(Deposed):
        configurations.publish("plan", {"by": "one"}, 1, election=leader)
    assert configurations.publish("plan", {"by": "two"}, 1, election=other) == 2
    assert configurations.next("plan", 1, seconds=0).document == {"by": "two"}


def test_a_session_that_ends_while_one_watches_costs_no_version(store, configurations, monkeypatch):
    monkeypatch.setattr(module, "_LOOK_AGAIN", 0.2)
    client = store.client()
    watching = Configurations(client, store.root)
    found = []
    thread = threading.Thread(target=lambda: found.append(watching.next("plan", 0, 60)))
    thread.start()
    store.expire(client)
    configurations.publish("plan", 7, after=0)
    thread.join(60)
    assert found == [(1, 7)]


def test_a_version_that_does_not_come_is_none_at_the_deadline(configurations):
    began = time.monotonic()
    assert configurations.next("plan", 0, seconds=0.2) is None
    assert time.monotonic() - began >= 0.2
    assert configurations.latest("plan") == 0


def test_who_falls_behind_what_is_kept_is_told(configurations, monkeypatch):
    monkeypatch.setattr(module, "KEPT", 3)
    for version in range(5):
        configurations.publish("plan", version, after=version)
    assert configurations.next("plan", 2, seconds=0) == (3, 2)
    with pytest.raises(BadInput, match="version 2 is not kept any more, the latest is 5"):
        configurations.next("plan", 1, seconds=0)


@pytest.mark.parametrize(
    ("name", "document", "sentence"),
    [
        ("../x", {}, "is not a configuration's name"),
        ("x/y", {}, "is not a configuration's name"),
        ("plan", float("nan"), "JSON cannot hold"),
        ("plan", {1, 2}, "JSON cannot hold"),
        ("plan", "x" * (513 << 10), "may have 524,288; publish a file"),
    ],
)
def test_what_cannot_be_published_is_refused(configurations, name, document, sentence):
    with pytest.raises(UsageError, match=sentence):
        configurations.publish(name, document, after=0)


def test_a_node_serves_versions_to_machines_that_do_not_reach_the_store(node, configurations):
    server = node(configurations=configurations)
    look = functools.partial(files.next_configuration, KEY, server.url, "plan")
    assert look(0, seconds=0) is None
    found = []
    threads = [threading.Thread(target=lambda: found.append(look(0, seconds=60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    configurations.publish("plan", {"rate": 0.5}, after=0)
    for thread in threads:
        thread.join(60)
    assert found == [(1, {"rate": 0.5})] * 3
    configurations.publish("plan", {"rate": 0.25}, after=1)
    assert look(1, seconds=60) == (2, {"rate": 0.25})
    assert ask(server.url, "/configurations/plan/1")[::2] == (200, b'{"rate": 0.5}')
    assert ask(server.url, "/configurations/plan/1", sign=False)[0] == 401
    assert ask(server.url, "/configurations/..%2fx/1")[0] == 404
    with pytest.raises(BadInput, match="401: the signature is wrong"):
        files.next_configuration(KEY + b"!", server.url, "plan", 0, seconds=0)
