"""The operations that the recipes need of ZooKeeper, and no more: the seam to a server.

`connection.Connection` is a client of a real server, `memory.Client` of a tree in this process.
Every call has a deadline. A callback (watch or listener) runs in a thread of the client, takes no
arguments and must not call the client: set an event there, and look in a thread of your own.
"""

import abc
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from semisync.common.errors import SemisyncError

Callback = Callable[[], None]


class StoreError(SemisyncError):
    """ZooKeeper did not do an operation."""


class NoNode(StoreError):
    """The node does not exist."""


class NodeExists(StoreError):
    """The node exists already."""


class BadVersion(StoreError):
    """The node has changed since it was read."""


class Forbidden(StoreError):
    """The node's access list does not allow it."""


class Unavailable(StoreError):
    """There is no connection, or no answer in time; the request may or may not have been met."""


class Stat(NamedTuple):
    """A node's state: how often its value was set, and the session that it ends with (0: none)."""

    version: int
    owner: int


class Check(NamedTuple):
    """In a transaction: the node has this version."""

    path: str
    version: int


class Create(NamedTuple):
    """In a transaction: makes a node, whose parent exists."""

    path: str
    value: bytes


class Put(NamedTuple):
    """In a transaction: sets a node's value; version -1: whatever version it has."""

    path: str
    value: bytes
    version: int


class Delete(NamedTuple):
    """In a transaction: removes a node; version -1: whatever version it has."""

    path: str
    version: int


Operation = Union[Check, Create, Put, Delete]


class Client(abc.ABC):
    """A connection to a tree of nodes. The same callback watches a node once, however often given.

    Raises:
        Unavailable, Forbidden: in every method but `listen` and `close`.
    """

    @property
    @abc.abstractmethod
    def session(self) -> Optional[int]:
        """The session's id; None while there is no connection."""

    @abc.abstractmethod
    def listen(self, callback: Callback) -> None:
        """Has `callback` run whenever the connection is lost or made, or the session replaced."""

    @abc.abstractmethod
    def get(self, path: str, watch: Optional[Callback] = None) -> Tuple[bytes, Stat]:
        """A node's value and state; `watch` runs once, when it changes or is removed.

        Raises:
            NoNode: it is not there; `watch` is then not kept.
        """

    @abc.abstractmethod
    def get_many(self, paths: Sequence[str]) -> Dict[str, Tuple[bytes, Stat]]:
        """Values and states of the nodes that exist, by path."""

    @abc.abstractmethod
    def stat(self, path: str, watch: Optional[Callback] = None) -> Optional[Stat]:
        """A node's state, or None; `watch` runs once, when it is made, changes or is removed."""

    @abc.abstractmethod
    def children(self, path: str, watch: Optional[Callback] = None) -> List[str]:
        """Names of the nodes below a node, sorted; `watch` runs once, when there are others.

        Raises:
            NoNode: it is not there; `watch` is then not kept.
        """

    @abc.abstractmethod
    def create(self, path: str, value: bytes, ephemeral: bool = False) -> None:
        """Makes a node, and the nodes above it; an ephemeral one ends with the session.

        Raises:
            NodeExists: it is there already.
        """

    @abc.abstractmethod
    def ensure(self, path: str) -> None:
        """Makes a node without a value, and the nodes above it, unless it exists."""

    @abc.abstractmethod
    def put(self, path: str, value: bytes, version: int) -> Stat:
        """Sets a node's value; version -1: whatever version it has. Raises: NoNode, BadVersion."""

    @abc.abstractmethod
    def delete(self, path: str, version: int) -> None:
        """Removes a node; version -1: whatever version it has. Raises: NoNode, BadVersion."""

    @abc.abstractmethod
    def commit(self, operations: Sequence[Operation]) -> None:
        """Does all of the operations or none.

        Raises:
            Exception: that of the first operation that fails, as if called alone.
        """

    @abc.abstractmethod
    def own(self, root: str) -> None:
        """Has nobody else write to a job's nodes, if the client has a user; cheap when repeated.

        Raises:
            BadInput: another user owns some of them.
        """

    @abc.abstractmethod
    def close(self) -> None:
        """Ends the session: its ephemeral nodes go at once."""
