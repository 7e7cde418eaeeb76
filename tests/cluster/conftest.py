"""A tree of nodes for the recipes: in memory, and on a real server."""

import itertools
import subprocess

import pytest

from semisync.cluster.zookeeper import memory
from semisync.cluster.zookeeper.connection import Connection
from tests.support.zookeeper import ZooKeeper

SESSION = 20.0  # seconds


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One ZooKeeper server; use a chroot of your own."""
    started = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    """A folder with two certificates of 127.0.0.1, ours and other, each its own authority."""
    folder = tmp_path_factory.mktemp("certificates")
    for name in ("ours", "other"):
        subprocess.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout {0}.key -out {0}.crt -days 2 "
            "-subj /CN={0} -addext subjectAltName=IP:127.0.0.1 && cat {0}.key {0}.crt > "
            "{0}.pem".format(name),
            shell=True,
            check=True,
            cwd=str(folder),
            stderr=subprocess.DEVNULL,
        )
    return folder


class Store:
    """Makes clients of one tree, and ends them.

    Attributes:
        root: a path in it, which nobody else uses.
    """

    root = "/job"
    _numbers = itertools.count()

    def __init__(self, server=None):
        self._server, self._clients = server, []
        self._tree = memory.Tree()
        self._chroot = "/test-{}".format(next(self._numbers))

    @property
    def is_real(self):
        return self._server is not None

    @property
    def hosts(self):
        return self._server.hosts + self._chroot

    def client(self, **more):
        """A client with a session of its own."""
        if self.is_real:
            made = Connection(self.hosts, SESSION, **more)
        else:
            made = memory.Client(self._tree)
        self._clients.append(made)
        return made

    def expire(self, client):
        """Has the server end the client's session."""
        if self.is_real:
            Connection(self.hosts, SESSION, client_id=client.client_id).close()
        else:
            client.expire()

    def close(self):
        for client in self._clients:
            client.close()


@pytest.fixture(params=["memory", "server"])
def store(request):
    made = Store(request.getfixturevalue("server") if request.param == "server" else None)
    yield made
    made.close()


@pytest.fixture
def real_store(server):
    made = Store(server)
    yield made
    made.close()
