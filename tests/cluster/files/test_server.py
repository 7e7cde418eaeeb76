"""A server gives what is in its manifest to who shows the token, and nothing else to anybody."""

import contextlib
import logging
import random
import select
import socket

import pytest

from semisync.cluster.files import connections
from semisync.cluster.files.download import bearer, file_path
from semisync.cluster.files.manifest import BLOCK
from semisync.cluster.files.server import FileServer
from semisync.common.errors import UsageError
from tests.cluster.files.conftest import HandedOut
from tests.cluster.files.http import ask, authority
from tests.support.waiting import until


@pytest.fixture
def server(handed_out):
    return handed_out.server


@pytest.fixture
def model(source):
    return (source / "model.ckpt").read_bytes()


SIZE = 3 * BLOCK + 7


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
def test_a_range_is_the_bytes_that_it_names(server, model, asked, expected):
    status, headers, body = ask(server, file_path("model.ckpt"), Range=asked)
    first, last, _ = expected.indices(SIZE)
    assert (status, body) == (206, model[expected])
    assert headers["Content-Range"] == "bytes {}-{}/{}".format(first, last - 1, SIZE)
    assert headers["Content-Length"] == str(last - first)


@pytest.mark.parametrize("asked", ["bytes={}-".format(SIZE), "bytes=9-5", "bytes=0-1,3-4", "x"])
def test_a_range_that_is_none_of_the_file_is_refused(server, asked):
    assert ask(server, file_path("model.ckpt"), Range=asked)[0] == 416


def test_the_whole_file_comes_as_it_is(server, source, model):
    path = file_path("model.ckpt")
    assert ask(server, path)[::2] == (200, model)
    status, headers, body = ask(server, path, "HEAD")
    assert (status, headers["Content-Length"], body) == (200, str(SIZE), b"")
    (source / "model.ckpt.gz").write_bytes(b"in no manifest")
    assert ask(server, path, Accept_Encoding="gzip, br")[0] == 406


def test_names_with_spaces_percents_and_letters_beyond_ascii_are_served(server):
    path = file_path("words/user name ü%2e.txt")
    assert "user%20name%20%C3%BC%252e.txt" in path
    assert ask(server, path)[::2] == (200, b"anna\nbela\n")
    assert ask(server, file_path("words/empty"))[::2] == (200, b"")


def test_the_manifest_is_served_as_it_was_hashed(handed_out):
    assert ask(handed_out.server, "/manifest")[2] == handed_out.manifest.to_bytes()


@pytest.mark.parametrize("token", [False, "x", "ü", 64 * "0"])
def test_without_the_right_token_every_path_is_alike(server, token):
    for path in (file_path("model.ckpt"), "/manifest", "/none"):
        assert ask(server, path, token=token)[0] == 401
    for header in (server.token, "Basic " + server.token, bearer(server.token) + "0", ""):
        assert ask(server, "/manifest", Authorization=header)[0] == 401


def test_a_token_for_one_server_is_none_for_another(server, source, tmp_path):
    other = HandedOut(source, tmp_path / "other")
    assert ask(other.server, "/manifest", token=server.token)[0] == 401
    other.server.close()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/files/",
        "/files/../../../../etc/passwd",
        "/files/..%2f..%2fetc/passwd",
        "/files/%2e%2e/%2e%2e/etc/passwd",
        "/files//etc/passwd",
        "/files/words",
        "/files/words/../one",
        "/files/%6fne",
        "/files/one?x",
        "/files/one#x",
        "/files/one/",
        "/files/one%00",
        "//files/one",
        "/manifest/",
        "http:/files/one",
    ],
)
def test_what_is_not_in_a_manifest_is_not_there(server, path):
    assert ask(server, path)[0] in (400, 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "MOVE"])
def test_only_get_and_head_are_served(server, method):
    status, headers, _ = ask(server, file_path("one"), method)
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


def test_a_body_a_long_head_and_garbage_are_refused_and_it_serves_on(server):
    head = "GET {} HTTP/1.1\r\nHost: x\r\n".format(file_path("one")).encode()
    assert b" 413 " in raw(server.url, head + b"Content-Length: 5\r\n\r\nhello")
    assert b" 413 " in raw(server.url, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert b" 200 " not in raw(server.url, b"GET /" + b"a" * 10**6 + b" HTTP/1.1\r\n\r\n")
    assert b" 200 " not in raw(server.url, head + b"X: y\r\n" * 10**5)
    assert b" 400 " in raw(server.url, b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n")
    assert ask(server, file_path("one"))[0] == 200


def test_a_head_that_never_ends_is_cut_and_so_are_too_many_connections(
    server, source, tmp_path, monkeypatch, caplog
):
    with monkeypatch.context() as short:
        short.setattr(connections.Limits.__init__, "__defaults__", (0.2, 5.0))
        hasty = HandedOut(source, tmp_path / "hasty").server
    monkeypatch.setattr(connections, "MOST_PER_ADDRESS", 3)
    with caplog.at_level(logging.WARNING, "semisync.cluster.files"):
        assert raw(hasty.url, b"GET / HTTP/1.1\r\nHost: ") == b""
        open_ones = [raw_connection(server.url) for _ in range(4)]
        assert open_ones[3].recv(1) == b""
        for connection in open_ones:
            connection.close()
    hasty.close()
    assert "it took too long" in caplog.text
    assert "its address has 3 connections already" in caplog.text
    assert ask(server, file_path("one"))[0] == 200


def raw_connection(url):
    host, _, port = authority(url).partition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def test_each_refusal_is_one_line_without_anything_secret(server, caplog):
    with caplog.at_level(logging.DEBUG):
        ask(server, "/none%0aforged", token="wrong")
        ask(server, file_path("one"), "PUT")
    lines = [
        record.getMessage() for record in caplog.records if record.name == "semisync.cluster.files"
    ]
    assert lines == [
        "refused 'GET' from 127.0.0.1 '/none%0aforged': it does not show the job's token",
        "refused 'PUT' from 127.0.0.1 '/files/one': only GET and HEAD are served",
    ]
    assert server.token not in caplog.text


def test_a_flood_of_refusals_is_counted_and_not_logged_line_by_line(server, caplog):
    with caplog.at_level(logging.WARNING, "semisync.cluster.files"):
        for _ in range(200):
            assert ask(server, "/", token=False)[0] == 401
        server.close()
    assert len(caplog.records) == 121
    assert caplog.records[-1].getMessage() == "refused 80 more requests within a minute"


def test_a_file_that_is_gone_or_a_link_is_said_to_be(handed_out):
    (handed_out.folder / "model.ckpt").unlink()
    (handed_out.folder / "run.sh").unlink()
    (handed_out.folder / "run.sh").symlink_to("/etc/passwd")
    assert ask(handed_out.server, file_path("model.ckpt"))[0] == 404
    assert ask(handed_out.server, file_path("run.sh"))[0] == 404
    assert ask(handed_out.server, file_path("one"))[0] == 200


@pytest.fixture
def large(tmp_path):
    """A function that serves a file of so many bytes; returns the server."""
    made = []

    def serve(size):
        (tmp_path / "large").mkdir()
        (tmp_path / "large" / "file").write_bytes(bytes(size))
        made.append(HandedOut(tmp_path / "large", tmp_path / "copy").server)
        return made[0]

    yield serve
    made[0].close()


def get(server, path):
    """The bytes of a request."""
    line = "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: {}\r\n\r\n"
    return line.format(path, bearer(server.token)).encode()


def test_a_client_that_does_not_take_its_answer_is_cut(large, monkeypatch, caplog):
    monkeypatch.setattr(connections.Limits.__init__, "__defaults__", (15.0, 2.0))
    monkeypatch.setattr(connections, "SLOWEST", 1e9)
    server, path = large(64 << 20), file_path("file")  # more than sockets hold
    with caplog.at_level(logging.WARNING), raw_connection(server.url) as connection:
        connection.sendall(get(server, path))
        until(lambda: caplog.records)
        taken = 0
        with contextlib.suppress(ConnectionError):
            for part in iter(lambda: connection.recv(1 << 20), b""):
                taken += len(part)
    assert taken < 64 << 20
    assert [record.getMessage() for record in caplog.records] == [
        "refused '' from 127.0.0.1 '': it took too long"
    ]


def test_a_client_that_goes_away_leaves_no_traceback(large, caplog):
    server, path = large(32 << 20), file_path("file")
    with caplog.at_level(logging.DEBUG):
        for taken in (0, 1, 1 << 20) * 100:
            with raw_connection(server.url) as connection:
                connection.sendall(get(server, path))
                while taken > 0:
                    taken -= len(connection.recv(taken))
        assert len(ask(server, path)[2]) == 32 << 20
        server.close()
    assert "Traceback" not in caplog.text
    assert "Error" not in caplog.text


def test_a_host_of_another_machine_is_refused(handed_out):
    with pytest.raises(UsageError, match="cannot listen on 192.0.2.1:0"):
        FileServer(handed_out.manifest, str(handed_out.folder), "192.0.2.1")


UP = ["..", "%2e%2e", ".%2e", "%252e%252e", "..%00", "%c0%ae%c0%ae", "%u002e%u002e", "..;", "..%20"]
SLASH = ["/", "//", "%2f", "%252f", "\\", "%5c", "/./", "%c0%af", "/;/"]
HEADS = ["Content-Length: 9", "Content-Length: x", "X: " + "y" * 10**5]
HEADS += ["Transfer-Encoding: chunked", "Transfer-Encoding: \x0bchunked"]


def hostile(dice, server):
    """The bytes of a request that must not be served."""
    path = (
        "/files/" + "".join(dice.choice(UP) + dice.choice(SLASH) for _ in range(3)) + "etc/passwd"
    )
    right = get(server, dice.choice(["/manifest", file_path("one")]))
    return dice.choice(
        [
            get(server, path),
            get(server, path.replace("/files", "")),
            right.replace(b"GET", dice.choice([b"PUT", b"get", b"TRACE", b"CONNECT"])),
            right.replace(server.token[:9].encode(), b"%d" % dice.getrandbits(32)),
            right[:-2] + dice.choice(HEADS).encode() + b"\r\n\r\n",
            bytes(dice.getrandbits(8) for _ in range(dice.choice([1, 300, 5000]))) + b"\r\n\r\n",
        ]
    )


def test_no_hostile_request_is_served_and_the_server_serves_on(server, caplog):
    answered = set()
    for seed in range(300):
        with raw_connection(server.url) as connection, contextlib.suppress(OSError):
            connection.sendall(hostile(random.Random(seed), server))
            if not select.select([connection], [], [], 0.5)[0]:  # it waits for more
                connection.shutdown(socket.SHUT_WR)
            answered.add(connection.recv(65536)[9:12])
    assert {b"400", b"401", b"404", b"405", b"413"} <= answered
    assert answered <= {b"400", b"401", b"404", b"405", b"413", b"431", b""}, answered
    assert ask(server, file_path("one"))[0] == 200
    assert "Traceback" not in caplog.text and server.token not in caplog.text
