"""Versions of a configuration come one after the other, whoever publishes and looks where."""

import threading

import pytest

from semisync.cluster.files import configurations
from semisync.cluster.files.configurations import Conflict, checked, latest, newest, publish
from semisync.common.errors import BadInput
from tests.support.waiting import until


def test_who_looks_sees_the_newest_and_is_told_of_the_next(store):
    writer, reader = store.client(), store.client()
    told = threading.Event()
    assert newest(reader, store.root, 0, told.set) is None and latest(reader, store.root) == 0
    for version in range(3):
        assert publish(writer, store.root, b"%d" % version, version) == version + 1
    assert told.wait(60)
    until(lambda: newest(reader, store.root, 0) == (3, b"2"))  # its server may be behind
    assert newest(reader, store.root, 3) is None


def test_of_several_that_publish_after_the_same_version_one_does(store):
    clients, done = [store.client() for _ in range(4)], []

    def one(client):
        try:
            done.append(publish(client, store.root, b"{}", 0))
        except Conflict as conflict:
            done.append(str(conflict))

    threads = [threading.Thread(target=one, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    sentence = "the configuration is at version 1, not 0: look at that one, then publish after it"
    assert sorted(map(str, done)) == ["1"] + [sentence] * 3
    with pytest.raises(Conflict):
        publish(clients[0], store.root, b"{}", 2)


def test_the_newest_are_kept(store, monkeypatch):
    monkeypatch.setattr(configurations, "KEPT", 3)
    client = store.client()
    for version in range(5):
        publish(client, store.root, b"%d" % version, version)
    names = client.children(store.root + "/configuration")
    assert [int(name) for name in names] == [3, 4, 5]
    assert newest(client, store.root, 1) == (5, b"4")


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (b"{", "c.json: a configuration is JSON, in UTF-8"),
        (b"\xff", "c.json: a configuration is JSON, in UTF-8"),
        (b"[" * 10**5, "c.json: a configuration is JSON, in UTF-8"),
        (b" " * (513 << 10), "c.json: a configuration has at most 524,288 bytes"),
    ],
)
def test_what_cannot_be_published_is_refused(document, sentence):
    with pytest.raises(BadInput, match=sentence):
        checked(document, "c.json")
