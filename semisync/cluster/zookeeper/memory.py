"""A tree of nodes in this process: ZooKeeper for a job on one machine, and the tests' fake.

    tree = Tree()
    one, other = Client(tree), Client(tree)

Each client is a session. Its faults are caused by hand: `cut` and `mend` the connection, `expire`
the session.
"""

import contextlib
import itertools
import threading
from typing import Callable, Dict, List, NamedTuple, Tuple

from semisync.cluster.zookeeper import client
from semisync.cluster.zookeeper.client import Stat

VALUE, CHILDREN = "value", "children"


class _Node(NamedTuple):
    value: bytes
    stat: Stat


class Tree:
    """The nodes, and the callbacks that wait for their changes."""

    def __init__(self):
        self.lock = threading.RLock()  # a client holds it around `apply`, which takes it again
        self.nodes: Dict[str, _Node] = {"/": _Node(b"", Stat(0, 0))}
        self.watches: Dict[Tuple[str, str], List[Callable[[], None]]] = {}
        self.sessions = itertools.count(1)

    def children(self, path):
        """Names below a node, sorted."""
        prefix = path.rstrip("/") + "/"
        inner = (name[len(prefix) :] for name in self.nodes if name.startswith(prefix))
        return sorted(name for name in inner if name and "/" not in name)

    def node(self, path, version=-1):
        """The node, if it has that version."""
        if path not in self.nodes:
            raise client.NoNode("there is no {}".format(path))
        if version not in (-1, self.nodes[path].stat.version):
            raise client.BadVersion("{} has changed".format(path))
        return self.nodes[path]

    def watch(self, what, path, callback):
        """Has `callback` run at the next change of the node's value or children."""
        waiting = self.watches.setdefault((what, path), [])
        if callback is not None and callback not in waiting:
            waiting.append(callback)

    def apply(self, operations, owner=0):
        """Does all of the operations or none; `owner` owns the ephemeral nodes among them."""
        with self.lock:
            before, changes = dict(self.nodes), []
            try:
                for operation in operations:
                    changes += self._apply(operation, owner)
            except client.StoreError:
                self.nodes = before
                raise
            callbacks = [call for change in changes for call in self.watches.pop(change, [])]
        for callback in callbacks:
            callback()

    def _apply(self, operation, owner):
        """Does one operation; returns the changes, for watches."""
        path = operation.path
        if isinstance(operation, client.Create):
            if path in self.nodes:
                raise client.NodeExists("{} exists".format(path))
            self.node(_parent(path))
            self.nodes[path] = _Node(operation.value, Stat(0, owner))
            return [(VALUE, path), (CHILDREN, _parent(path))]
        node = self.node(path, operation.version)
        if isinstance(operation, client.Put):
            stat = Stat(node.stat.version + 1, node.stat.owner)
            self.nodes[path] = _Node(operation.value, stat)
            return [(VALUE, path)]
        if isinstance(operation, client.Delete):
            del self.nodes[path]
            return [(VALUE, path), (CHILDREN, path), (CHILDREN, _parent(path))]
        return []


def _parent(path):
    return path.rpartition("/")[0] or "/"


class Client(client.Client):
    """A session on a tree.

    Args:
        tree: a `Tree`.
    """

    def __init__(self, tree):
        self._tree = tree
        self._listeners = []
        self._connected = True
        self._session = next(tree.sessions)

    @property
    def session(self):
        return self._session if self._connected else None

    def listen(self, callback):
        self._listeners.append(callback)

    def get(self, path, watch=None):
        with self._locked() as tree:
            node = tree.node(path)
            tree.watch(VALUE, path, watch)
            return node.value, node.stat

    def get_many(self, paths):
        with self._locked() as tree:
            return {path: tuple(tree.nodes[path]) for path in paths if path in tree.nodes}

    def stat(self, path, watch=None):
        with self._locked() as tree:
            tree.watch(VALUE, path, watch)
            return tree.nodes[path].stat if path in tree.nodes else None

    def children(self, path, watch=None):
        with self._locked() as tree:
            tree.node(path)
            tree.watch(CHILDREN, path, watch)
            return tree.children(path)

    def create(self, path, value, ephemeral=False):
        self.ensure(_parent(path))
        with self._locked() as tree:
            tree.apply([client.Create(path, value)], self._session if ephemeral else 0)

    def ensure(self, path):
        parts = path.strip("/").split("/")
        with self._locked() as tree:
            for depth in range(1, len(parts) + 1):
                inner = "/" + "/".join(parts[:depth])
                if inner not in tree.nodes:
                    tree.apply([client.Create(inner, b"")])

    def put(self, path, value, version):
        with self._locked() as tree:
            tree.apply([client.Put(path, value, version)])
            return tree.node(path).stat

    def delete(self, path, version):
        self.commit([client.Delete(path, version)])

    def commit(self, operations):
        with self._locked() as tree:
            tree.apply(operations)

    def own(self, root):
        pass  # there are no users

    def close(self):
        self._end_session()
        self._connected = False

    def cut(self):
        """The connection is lost; the session lives on."""
        self._connected = False
        self._tell()

    def mend(self):
        """The connection is there again."""
        self._connected = True
        self._tell()

    def expire(self):
        """The server ends the session; the client has a new one."""
        self._end_session()
        self._session = next(self._tree.sessions)
        self._connected = True
        self._tell()

    @contextlib.contextmanager
    def _locked(self):
        with self._tree.lock:
            if not self._connected:
                raise client.Unavailable("there is no connection")
            yield self._tree

    def _end_session(self):
        with self._tree.lock:
            nodes = self._tree.nodes.items()
            mine = [path for path, node in nodes if node.stat.owner == self._session]
            self._tree.apply([client.Delete(path, -1) for path in mine])

    def _tell(self):
        for listener in self._listeners:
            listener()
