"""The tree in memory does what a ZooKeeper server does."""

import threading

import pytest

from semisync.cluster.zookeeper.client import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Put,
    Stat,
)
from tests.support.waiting import until

pytestmark = pytest.mark.one_tensorflow


def test_a_node_has_its_value_and_counts_its_changes(store):
    client = store.client()
    client.create("/a/b/c", b"one")
    assert client.get("/a/b/c") == (b"one", Stat(0, 0))
    assert client.put("/a/b/c", b"two", 0) == Stat(1, 0)
    assert client.put("/a/b/c", b"three", -1).version == 2
    assert client.get("/a/b/c")[0] == b"three"
    assert client.children("/a") == ["b"]
    assert client.get_many(["/a/b/c", "/none"]) == {"/a/b/c": (b"three", Stat(2, 0))}


def test_what_cannot_be_done_is_told(store):
    client = store.client()
    client.create("/a", b"")
    client.ensure("/a")
    with pytest.raises(NodeExists):
        client.create("/a", b"")
    with pytest.raises(BadVersion):
        client.put("/a", b"", 7)
    with pytest.raises(BadVersion):
        client.delete("/a", 7)
    for call in (client.get, client.children, lambda path: client.delete(path, -1)):
        with pytest.raises(NoNode):
            call("/none")
    assert client.stat("/none") is None


@pytest.mark.parametrize(
    "wrong, error",
    [(Check("/a", 5), BadVersion), (Delete("/b", -1), NoNode), (Create("/a", b""), NodeExists)],
)
def test_a_transaction_is_done_whole_or_not_at_all(store, wrong, error):
    client = store.client()
    client.create("/a", b"old")
    with pytest.raises(error):
        client.commit([Put("/a", b"new", 0), Create("/c", b""), wrong])
    assert client.get("/a") == (b"old", Stat(0, 0))
    assert client.stat("/c") is None
    client.commit([Check("/a", 0), Put("/a", b"new", 0), Create("/c", b"")])
    assert client.get("/a")[0] == b"new"


def test_an_ephemeral_node_ends_with_its_session(store):
    one, other = store.client(), store.client()
    one.create("/job/mine", b"", ephemeral=True)
    assert other.stat("/job/mine").owner == one.session
    gone = threading.Event()
    other.children("/job", gone.set)
    one.close()
    assert gone.wait(10)
    assert other.children("/job") == []


def test_a_watch_runs_once_at_the_next_change(store):
    one, other = store.client(), store.client()
    runs = []
    assert one.stat("/a", lambda: runs.append("made")) is None
    other.create("/a", b"")
    until(lambda: runs == ["made"])
    one.get("/a", lambda: runs.append("set"))
    other.put("/a", b"1", -1)
    other.put("/a", b"2", -1)
    until(lambda: runs == ["made", "set"])
    one.get("/a", lambda: runs.append("removed"))
    other.delete("/a", -1)
    until(lambda: runs == ["made", "set", "removed"])


def test_an_expired_session_is_followed_by_another(store):
    client, told = store.client(), threading.Event()
    before = client.session
    client.listen(told.set)
    store.expire(client)
    assert told.wait(10)
    until(lambda: client.session not in (None, before))


def test_there_is_no_session_from_the_moment_the_connection_is_lost(real_store):
    client = real_store.client()
    client._kazoo._live.clear()  # kazoo knows it, its state and listeners do not yet
    assert client.session is None
