"""A node serves what is in its manifests to who has the key, byte for byte, and nothing else."""

import contextlib
import logging
import socket

import pytest

from semisync.cluster.files import connections
from semisync.cluster.files.manifest import make_manifest
from semisync.cluster.files.share import file_path
from semisync.cluster.files.signing import Request, signature
from tests.cluster.files.http import KEY, ask, authority


@pytest.fixture
def published(node, source):
    one = node()
    return one, one.publish(source, "job")


@pytest.fixture
def model(source):
    return (source / "model.ckpt").read_bytes()


SIZE = 10 * (1 << 16) + 7


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-0", slice(0, 1)),
        ("bytes=0-", slice(0, None)),
        ("bytes=5-9", slice(5, 10)),
        ("bytes=65535-65536", slice(65535, 65537)),
        ("bytes=-7", slice(SIZE - 7, None)),
        ("bytes=-99999999", slice(0, None)),
        ("bytes=600000-99999999", slice(600000, None)),
        ("bytes={}-{}".format(SIZE - 1, SIZE - 1), slice(SIZE - 1, None)),
    ],
)
def test_a_range_is_the_bytes_that_it_names(published, model, asked, expected):
    one, digest = published
    status, headers, body = ask(one.url, file_path(digest, "model.ckpt"), Range=asked)
    first, last, _ = expected.indices(SIZE)
    assert (status, body) == (206, model[expected])
    assert headers["Content-Range"] == "bytes {}-{}/{}".format(first, last - 1, SIZE)
    assert headers["Content-Length"] == str(last - first)


@pytest.mark.parametrize("asked", ["bytes={}-".format(SIZE), "bytes=9-5", "bytes=0-1,3-4", "x"])
def test_a_range_that_is_none_of_the_file_is_refused(published, asked):
    one, digest = published
    assert ask(one.url, file_path(digest, "model.ckpt"), Range=asked)[0] == 416


def test_the_whole_file_comes_as_it_is(published, source, model):
    one, digest = published
    path = file_path(digest, "model.ckpt")
    assert ask(one.url, path)[::2] == (200, model)
    status, headers, body = ask(one.url, path, "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(SIZE), b"")
    (source / "model.ckpt.gz").write_bytes(b"in no manifest")
    assert ask(one.url, path, Accept_Encoding="gzip, br")[0] == 406


def test_names_with_spaces_percents_and_letters_beyond_ascii_are_served(published):
    one, digest = published
    path = file_path(digest, "words/user name ü%2e.txt")
    assert "user%20name%20%C3%BC%252e.txt" in path
    assert ask(one.url, path)[::2] == (200, b"anna\nbela\n")
    assert ask(one.url, file_path(digest, "words/empty"))[::2] == (200, b"")


def test_the_manifest_is_served_as_it_was_hashed(published, source):
    one, digest = published
    assert ask(one.url, "/{}/manifest".format(digest))[2] == make_manifest(source, "job").to_bytes()


@pytest.mark.parametrize("sign", [False, {"path": "/other"}, {"method": "HEAD"}, {"range": "x"}])
def test_without_a_right_signature_every_path_is_alike(published, sign):
    one, digest = published
    for path in (file_path(digest, "model.ckpt"), "/{}/manifest".format(digest), "/none"):
        assert ask(one.url, path, sign=sign)[0] == 401
        assert ask(one.url, path, key=KEY + b"!")[0] == 401


def test_a_signature_for_one_node_is_none_for_another(published, node, source):
    one, digest = published
    other = node()
    other.publish(source, "job")
    path = file_path(digest, "one")
    assert ask(other.url, path, sign={"authority": authority(one.url)})[0] == 401
    assert ask(other.url, path)[0] == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/{d}",
        "/{d}/files/",
        "/{d}/files/../../../../etc/passwd",
        "/{d}/files/..%2f..%2fetc/passwd",
        "/{d}/files/%2e%2e/%2e%2e/etc/passwd",
        "/{d}/files//etc/passwd",
        "/{d}/files/words",
        "/{d}/files/words/../one",
        "/{d}/files/%6fne",
        "/{d}/files/one?x",
        "/{d}/files/one#x",
        "/{d}/files/one/",
        "/{d}/files/one%00",
        "//{d}/files/one",
        "/" + 64 * "0" + "/files/one",
        "/configurations/plan/1",
    ],
)
def test_what_is_not_in_a_manifest_is_not_there(published, path):
    one, digest = published
    assert ask(one.url, path.format(d=digest))[0] in (400, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MOVE"])
def test_only_get_and_head_are_served(published, method):
    one, digest = published
    status, headers, _ = ask(one.url, file_path(digest, "one"), method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def raw(url, *parts):
    """All that a node answers to bytes, until it closes the connection."""
    host, _, port = authority(url).partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        answered = b""
        with contextlib.suppress(ConnectionError):
            for part in parts:
                connection.sendall(part)
            while True:
                received = connection.recv(65536)
                if not received:
                    break
                answered += received
        return answered


def test_a_body_a_long_head_and_garbage_are_refused_and_it_serves_on(published):
    one, digest = published
    head = "GET {} HTTP/1.1\r\nHost: x\r\n".format(file_path(digest, "one")).encode()
    assert b" 413 " in raw(one.url, head + b"Content-Length: 5\r\n\r\nhello")
    assert b" 413 " in raw(one.url, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert b" 200 " not in raw(one.url, b"GET /" + b"a" * 10**6 + b" HTTP/1.1\r\n\r\n")
    assert b" 200 " not in raw(one.url, head + b"X: y\r\n" * 10**5)
    assert b" 400 " in raw(one.url, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert ask(one.url, file_path(digest, "one"))[0] == 200


def test_a_head_that_never_ends_is_cut_and_so_are_too_many_connections(
    node, source, monkeypatch, caplog
):
    with monkeypatch.context() as short:
        short.setattr(connections.Limits.__init__, "__defaults__", (0.2, 5.0))
        hasty = node()
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 3)
    one = node()
    digest = one.publish(source, "job")
    with caplog.at_level(logging.WARNING, "semisync.cluster.files"):
        assert raw(hasty.url, b"GET / HTTP/1.1\r\nHost: ") == b""
        open_ones = [raw_connection(one.url) for _ in range(4)]
        assert open_ones[3].recv(1) == b""
        for connection in open_ones:
            connection.close()
    assert "it took too long" in caplog.text
    assert "its address has 3 connections already" in caplog.text
    assert ask(one.url, file_path(digest, "one"))[0] == 200


def raw_connection(url):
    host, _, port = authority(url).partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_each_refusal_is_one_line_without_anything_secret(published, caplog):
    one, digest = published
    with caplog.at_level(logging.DEBUG):
        ask(one.url, "/none%0aforged", key=KEY + b"!")
        ask(one.url, file_path(digest, "one"), "PUT")
    lines = [
        record.getMessage() for record in caplog.records if record.name == "semisync.cluster.files"
    ]
    assert lines == [
        "refused 'GET' from 127.0.0.1 '/none%0aforged': the signature is wrong",
        "refused 'PUT' from 127.0.0.1 '/{}/files/one': only GET and HEAD are served".format(digest),
    ]
    assert KEY.decode() not in caplog.text
    assert "mac=" not in caplog.text


def test_a_flood_of_refusals_is_counted_and_not_logged_line_by_line(published, caplog):
    one, _ = published
    with caplog.at_level(logging.WARNING, "semisync.cluster.files"):
        for _ in range(200):
            ask(one.url, "/", sign=False)
        one.close()
    assert one.refusals == {401: 200}
    assert len(caplog.records) == 121
    assert caplog.records[-1].getMessage() == "refused 80 more requests within a minute"


def test_a_file_that_is_gone_is_said_to_be(published, source):
    one, digest = published
    (source / "model.ckpt").unlink()
    assert ask(one.url, file_path(digest, "model.ckpt"))[0] == 404
    assert ask(one.url, file_path(digest, "one"))[0] == 200


def test_a_client_that_does_not_take_its_answer_is_cut(node, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(connections.Limits.__init__, "__defaults__", (15.0, 2.0))
    monkeypatch.setattr(connections, "SLOWEST", 1e9)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(bytes(64 << 20))  # more than sockets hold
    one = node()
    path = file_path(one.publish(tmp_path / "large", "job"), "file")
    head = "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n".format(
        path, signature(KEY, Request("GET", authority(one.url), path))
    )
    with caplog.at_level(logging.WARNING), raw_connection(one.url) as connection:
        connection.sendall(head.encode())
        while one.refusals != {0: 1}:
            assert ask(one.url, path, "HEAD")[0] == 200
        taken = 0
        with contextlib.suppress(ConnectionError):
            for part in iter(lambda: connection.recv(1 << 20), b""):
                taken += len(part)
    assert taken < 64 << 20
    assert [record.getMessage() for record in caplog.records] == [
        "refused '' from 127.0.0.1 '': it took too long"
    ]


def test_a_client_that_goes_away_leaves_no_traceback(node, tmp_path, caplog):
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(bytes(32 << 20))
    one = node()
    path = file_path(one.publish(tmp_path / "large", "job"), "file")
    with caplog.at_level(logging.DEBUG):
        for taken in (0, 1, 1 << 20) * 100:
            signed = signature(KEY, Request("GET", authority(one.url), path))
            head = "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n".format(path, signed)
            with raw_connection(one.url) as connection:
                connection.sendall(head.encode())
                while taken > 0:
                    taken -= len(connection.recv(taken))
        assert len(ask(one.url, path)[2]) == 32 << 20
        one.close()
    assert "Traceback" not in caplog.text
    assert "Error" not in caplog.text
