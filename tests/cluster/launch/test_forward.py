"""Bytes reach a worker wherever it is now, and come back."""

import socket
import threading

import pytest

from semisync.cluster.launch import forward
from semisync.cluster.launch.forward import Forwards

pytestmark = pytest.mark.one_tensorflow


class Echo:
    """A server that sends back what it gets, with its name in front."""

    def __init__(self, name):
        self._name = name
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(5)
        self.address = "127.0.0.1:{}".format(self._listener.getsockname()[1])
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            with taken:
                taken.sendall(self._name)
                while True:
                    data = taken.recv(1 << 16)
                    if not data:
                        break
                    taken.sendall(data)

    def close(self):
        if self._listener.fileno() >= 0:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()


@pytest.fixture
def servers():
    made = [Echo(b"A"), Echo(b"B")]
    yield made
    for server in made:
        server.close()


def connect(address):
    host, port = address.split(":")
    connection = socket.create_connection((host, int(port)), 30)
    connection.settimeout(30)
    return connection


def test_a_connection_waits_for_a_worker_that_is_not_there_yet(servers):
    target = []
    made = Forwards(lambda name: target[0] if target else None)
    with connect(made.address("worker-1")) as connection:
        connection.sendall(b"hello")
        target.append(servers[0].address)
        with connection.makefile("rb") as answer:
            assert answer.read(6) == b"Ahello"
    made.close()


def test_later_connections_follow_a_worker_that_has_moved(servers):
    target = [servers[0].address]
    made = Forwards(lambda name: target[0])
    with connect(made.address("worker-1")) as connection:
        assert connection.recv(1) == b"A"
    target[0] = servers[1].address
    with connect(made.address("worker-1")) as connection:
        assert connection.recv(1) == b"B"
    made.close()


def test_many_bytes_pass_both_ways_in_order(servers):
    made = Forwards(lambda name: servers[0].address)
    data = bytes(range(256)) * 20000
    with connect(made.address("worker-1")) as connection:
        sender = threading.Thread(target=connection.sendall, args=(data,))
        sender.start()
        with connection.makefile("rb") as answer:
            assert answer.read(1 + len(data)) == b"A" + data
        sender.join()
    made.close()


def test_a_worker_that_is_gone_ends_the_connection(servers, monkeypatch):
    servers[0].close()
    made = Forwards(lambda name: servers[0].address)
    with connect(made.address("worker-1")) as connection:
        assert connection.recv(1) == b""
    made.close()
    monkeypatch.setattr(forward, "WAIT_FOR_WORKER", 0.1)
    nobody = Forwards(lambda name: None)
    address = nobody.address("worker-1")
    with connect(address) as connection:
        assert connection.recv(1) == b""
    nobody.close()
    with pytest.raises(ConnectionRefusedError):
        connect(address)


def test_each_process_has_an_address_of_its_own_which_stays(servers):
    made = Forwards({"a": servers[0].address, "b": servers[1].address}.get)
    assert made.address("a") == made.address("a") != made.address("b")
    assert sorted(made.names) == ["a", "b"]
    for name, answer in (("b", b"B"), ("a", b"A")):
        with connect(made.address(name)) as connection:
            assert connection.recv(1) == answer
    made.close()
