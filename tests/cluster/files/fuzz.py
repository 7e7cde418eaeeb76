"""Hostile requests to a node: none is served, and it serves others all the while.

    python -m tests.cluster.files.fuzz [--count 10000] [--seed 0]

Each turn sends one request that must not be served, some signed with the right key, and reads what
comes back: nothing, or a status from 400 on, without a byte of any file. Every 100th turn downloads
a file as it should be. A failure names its seed; --seed S --count 1 repeats it. The suite runs
500 turns.
"""

import argparse
import collections
import contextlib
import http.client
import logging
import pathlib
import random
import socket
import sys
import tempfile
import time
from unittest import mock

from semisync.cluster import files
from semisync.cluster.files import connections
from semisync.cluster.files.share import file_path, manifest_path
from semisync.cluster.files.signing import Request, signature
from tests.cluster.files.http import KEY, ask, authority

SECRET = b"no hostile request may read this; "
SECONDS = 60.0  # for an answer
HEAD_SECONDS, ANSWER_SECONDS = 10.0, 20.0  # room for a machine that is busy itself
UP = ["..", "%2e%2e", ".%2e", "%2E.", "%252e%252e", "..%00", "%c0%ae%c0%ae", "%u002e%u002e", "...."]
UP += ["..;", "%ff..", "..%20", "\u2024\u2024", ".%00."]
SLASH = ["/", "//", "%2f", "%252f", "\\", "%5c", "/./", "%c0%af", "\u2215", "/;/", "%2F"]
TARGETS = ["etc/passwd", "outside.txt", "proc/self/environ", "source/model.ckpt", "job.key"]
METHODS = ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PATCH", "get", "PROPFIND"]
RANGES = ["bytes=9-5", "bytes=99999999-", "bytes=0-0,2-3", "bytes=--1", "bytes=", "x"]
RANGES += ["bytes=1e3-", "bytes=0x0-0x9", "bytes=0-1;", "bytes=\t0-1", "=0-1"]


class Hostile:
    """One hostile client: what it sends in a turn, by kind.

    Args:
        node: the `Node`.
        digest: of what it publishes.
        valid: the paths of requests that it serves.
    """

    def __init__(self, node, digest, valid):
        self.url, self.digest, self.valid = node.url, digest, valid
        self.kinds = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("send_")]
        self.slow = []

    def request(self, path, method="GET", key=KEY, headers=(), now=None, sign=()):
        """The bytes of a request, whose signature is right unless `sign` or `key` differ."""
        given = dict(headers)
        asked = Request(method, authority(self.url), path, given.get("Range", ""))
        given.setdefault("Authorization", signature(key, asked._replace(**dict(sign)), now))
        lines = ["{} {} HTTP/1.1".format(method, path), "Host: " + authority(self.url)]
        lines += ["{}: {}".format(*pair) for pair in given.items()]
        return "\r\n".join(lines + ["", ""]).encode("utf-8", "surrogateescape")

    def send_path_outside(self, dice):
        path = dice.choice(
            ["/", "/" + self.digest + "/", "/" + self.digest + "/files/", "", "http:/"]
        )
        for _ in range(dice.randrange(1, 9)):
            path += dice.choice(UP) + dice.choice(SLASH)
        return self.request(path + dice.choice(TARGETS))

    def send_changed_path(self, dice):
        path = dice.choice(self.valid)
        for _ in range(dice.choice([1, 1, 2, 5])):
            at = dice.randrange(len(path))
            new = dice.choice(
                ["", "%", "/", "?", "#", "..", "%00", "%2f", chr(dice.randrange(33, 127))]
            )
            path = path[:at] + new + path[at + dice.randrange(2) :]
        head, hash_, _ = path.partition("#")
        return None if path in self.valid or (hash_ and head in self.valid) else self.request(path)

    def send_wrong_signature(self, dice):
        path = dice.choice(self.valid)
        field = dice.choice(Request._fields)
        wrong = {field: dice.choice(["x", "HEAD", "/other", "bytes=0-9", "localhost:80"])}
        return dice.choice(
            [
                lambda: self.request(path, key=dice.getrandbits(256).to_bytes(32, "big")),
                lambda: self.request(path, sign=wrong),
                lambda: self.request(path, headers={"Authorization": damaged(dice)}),
            ]
        )()

    def send_replay(self, dice):
        path = dice.choice(self.valid)
        header = signature(KEY, Request("GET", authority(self.url), path))
        assert ask(self.url, path, Authorization=header)[0] == 200
        return self.request(path, headers={"Authorization": header})

    def send_at_another_time(self, dice):
        off = dice.choice([-1, 1]) * dice.choice([32, 60, 3600, 10**6, 10**9])
        return self.request(dice.choice(self.valid), now=max(0, time.time() + off))

    def send_bad_range(self, dice):
        return self.request(self.valid[-1], headers={"Range": dice.choice(RANGES)})

    def send_method(self, dice):
        return self.request(dice.choice(self.valid), dice.choice(METHODS))

    def send_too_much(self, dice):
        path, size = dice.choice(self.valid), dice.choice([10**4, 10**5, 10**6])
        return dice.choice(
            [
                lambda: self.request(path + "?" + "a" * size),
                lambda: self.request(path, headers={"X": "a" * size}),
                lambda: self.request(path, headers={"X%d" % n: "y" for n in range(size // 10)}),
                lambda: self.request(path, headers={"Content-Length": size}) + b"z" * size,
                lambda: self.request(path, headers={"Content-Length": 10**15}),
            ]
        )()

    def send_smuggled(self, dice):
        inner = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n".format(dice.choice(self.valid)).encode()
        framing = dice.choice(
            [
                {"Content-Length": len(inner), "Transfer-Encoding": "chunked"},
                {"Transfer-Encoding": "chunked, identity"},
                {"Transfer-Encoding": "\x0bchunked"},
                {"Content-Length": "5, 6"},
                {"Content-Length": "+{}".format(len(inner))},
                {"Content-Length": len(inner)},
            ]
        )
        return self.request(dice.choice(self.valid), headers=framing) + inner

    def send_two_of_one_header(self, dice):
        line = dice.choice(["Range: bytes=0-9", "Authorization: x"])
        whole = self.request(self.valid[-1], headers={"Range": "bytes=0-1"})
        return whole[:-2] + line.encode() + b"\r\n\r\n"

    def send_configuration(self, dice):
        name = dice.choice(["plan", "../x", "..%2fx", "a" * 200, "%00"])
        return self.request(
            "/configurations/{}/{}".format(name, dice.choice([0, 1, -1, "x", 10**12]))
        )

    def send_garbage(self, dice):
        data = bytes(dice.getrandbits(8) for _ in range(dice.choice([1, 16, 300, 5000])))
        start = dice.choice(
            [b"", b"GET ", b"\x16\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\r\n" * 50]
        )
        return start + data + b"\r\n\r\n"

    def send_changed_bytes(self, dice):
        whole = bytearray(self.request(dice.choice(self.valid), key=KEY + b"!"))
        for _ in range(dice.choice([1, 3, 20])):
            whole[dice.randrange(len(whole))] = dice.getrandbits(8)
        return bytes(whole) + b"\r\n\r\n"

    def send_slowly(self, dice):
        whole = self.request(dice.choice(self.valid))
        connection = connect(self.url)
        connection.sendall(whole[: dice.randrange(len(whole) - 3)])
        self.slow.append(connection)


def damaged(dice):
    """A header that is no signature, or not of this request."""
    header = signature(KEY, Request("GET", "x:1", "/x"))
    at = dice.randrange(len(header))
    new = dice.choice(["", "0", "f", " ", ",", "\x7f", "mac=", "A" * 5000])
    return dice.choice(["", header, header[:at] + new + header[at + 1 :], header * 2, "Basic eDp5"])


def connect(url):
    host, _, port = authority(url).partition(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def answer(url, data):
    """What comes back until the connection is closed, or an answer is whole."""
    with connect(url) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        return received(connection)


def received(connection):
    data = b""
    with contextlib.suppress(ConnectionError):
        while True:
            part = connection.recv(65536)
            data += part
            head, end, body = data.partition(b"\r\n\r\n")
            if not part or (end and b"ength: %d\r\n" % len(body) in head + b"\r\n"):
                break
    return data


def judge(data):
    """AssertionError where something was served; else the status, 0 for none."""
    assert SECRET[:12] not in data, "bytes of a file: {!r}".format(data[:300])
    if not data:
        return 0
    status = int(data.split(b" ", 2)[1])
    assert status >= 400, "served: {!r}".format(data[:300])
    return status


def run(folder, count, seed=0):
    """Runs the turns; returns a Counter of (kind, status)."""
    source = pathlib.Path(str(folder)) / "source"
    source.mkdir()
    (source / "model.ckpt").write_bytes(SECRET * 1000)
    (source.parent / "outside.txt").write_bytes(SECRET)
    outcomes = collections.Counter()
    seconds = (HEAD_SECONDS, ANSWER_SECONDS)
    limits = mock.patch.object(connections.Limits.__init__, "__defaults__", seconds)
    with limits, files.Node(KEY) as node:
        digest = node.publish(source, "fuzz")
        valid = [manifest_path(digest), file_path(digest, "model.ckpt")]
        hostile = Hostile(node, digest, valid)
        for number in range(seed, seed + count):
            dice = random.Random(number)
            kind = hostile.kinds[number % len(hostile.kinds)]
            name = kind.__name__.replace("send_", "").replace("_", " ")
            try:
                data = kind(dice)
                if data is not None:
                    outcomes[name, judge(answer(node.url, data))] += 1
            except (AssertionError, OSError, http.client.HTTPException) as error:
                sentence = "--seed {} --count 1, {}: {!r}".format(number, name, error)
                raise AssertionError(sentence) from error
            if number % 100 == 0:
                assert ask(node.url, valid[-1])[2] == SECRET * 1000
            if len(hostile.slow) >= 50 or number == seed + count - 1:
                while hostile.slow:
                    with hostile.slow.pop() as connection:
                        outcomes["slowly", judge(received(connection))] += 1
        assert ask(node.url, valid[-1])[2] == SECRET * 1000
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        outcomes = run(folder, args.count, args.seed)
    for (kind, status), count in sorted(outcomes.items()):
        print("{:20} {:>4} {:6}".format(kind, status or "cut", count))
    seconds = time.monotonic() - began
    print("{} refused, none served, in {:.0f} s".format(sum(outcomes.values()), seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
