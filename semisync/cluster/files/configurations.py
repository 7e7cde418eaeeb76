"""Configurations: small documents whose versions everybody sees in order, each once.

Version N of a configuration is the node ROOT/configurations/NAME/N, which never changes.

1. Who publishes says after which version; where another was faster there is a `Conflict`, and
   nothing changes. The leader publishes under its epoch, so that a former one cannot.
2. Who watches asks for the version after the last one that it saw, and waits until it is there:

       version = 0
       while True:
           found = configurations.next("plan", after=version, seconds=60)
           if found is not None:
               version, document = found

3. The KEPT newest versions are kept; who falls behind them is told so.

A document is JSON, at most LARGEST bytes of it: ZooKeeper is no place for files. Publish those with
a `Node`, and the digest and the URL as a configuration.
"""

import json
import re
import threading
import time
from typing import Any, List, NamedTuple, Optional

from semisync.cluster.zookeeper.client import (
    Check,
    Client,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Unavailable,
)
from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError

KEPT = 100
LARGEST = 512 << 10  # bytes
_LOOK_AGAIN = 5.0  # seconds, where no watch told of anything
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Configuration(NamedTuple):
    """A version, from 1 on, and its document.

    Attributes:
        version: an int, from 1 on.
        document: what JSON can hold.

    Examples:
        >>> files.Configuration(1, {"rate": 0.1}).document
        {'rate': 0.1}
    """

    version: int
    document: Any


class Conflict(UsageError):
    """There is a newer version than the one after which to publish.

    Args:
        name: of the configuration.
        after: the version after which it was to be published.
        latest: the version that it has.

    Attributes:
        latest: the version that it has.

    Examples:
        >>> print(files.Conflict("plan", after=1, latest=2))
        plan is at version 2, not 1: read that one, then publish after it
    """

    def __init__(self, name: str, after: int, latest: int) -> None:
        super().__init__(
            "{} is at version {}, not {}: read that one, then publish after it".format(
                name, latest, after
            )
        )
        self.latest = latest


class Configurations:
    """The configurations of a job.

    Args:
        client: a `semisync.cluster.zookeeper.client.Client`.
        root: path of the job.

    Examples:
        >>> from semisync.cluster.zookeeper import memory  # or connection.Connection("zk1:2181")
        >>> configurations = files.Configurations(memory.Client(memory.Tree()), "/semisync/ctr-7")
        >>> configurations.publish("plan", {"rate": 0.1}, after=0)
        1
        >>> configurations.next("plan", after=0, seconds=1.0)
        Configuration(version=1, document={'rate': 0.1})
    """

    def __init__(self, client: Client, root: str) -> None:
        self._client, self._root = client, root

    def publish(self, name: str, document: Any, after: int, election: Any = None) -> int:
        """Makes the version that follows `after`, which is the latest.

        Args:
            name: letters, digits, ".", "_" and "-".
            document: what JSON can hold.
            after: 0 for the first.
            election: a `semisync.cluster.zookeeper.leader.Election`: only the leader publishes.

        Returns:
            The number of the new version.

        Raises:
            Conflict: `after` is not the latest.
            UsageError: the name or the document is not what it should be.
            BadInput: the job's nodes are another user's.
            semisync.cluster.zookeeper.leader.Deposed: this process does not lead.
        """
        value = _encoded(name, document)
        folder = self._folder(name)
        self._client.ensure(folder)
        latest = self.latest(name)
        if latest != after:
            raise Conflict(name, after, latest)
        operations: List[Operation] = [Create(self._path(name, after + 1), value)]
        if after:  # it is the latest still, and was not removed
            operations.insert(0, Check(self._path(name, after), 0))
        oldest = self._path(name, after + 1 - KEPT)
        if after >= KEPT and self._client.stat(oldest) is not None:
            operations.append(Delete(oldest, -1))
        try:
            (election.publish if election is not None else self._client.commit)(operations)
        except (NodeExists, NoNode):
            raise Conflict(name, after, self.latest(name)) from None
        return after + 1

    def latest(self, name: str) -> int:
        """The newest version.

        Args:
            name: of the configuration.

        Returns:
            Its number; 0 where there is none.

        Raises:
            BadInput: the job's nodes are another user's.
        """
        try:
            versions = self._client.children(self._folder(name))
        except NoNode:
            return 0
        return max(map(int, versions), default=0)

    def read(self, name: str, version: int, watch: Any = None) -> Optional[bytes]:
        """The JSON of a version.

        Args:
            name: of the configuration.
            version: its number.
            watch: called once the version is there, where it is not there yet.

        Returns:
            Bytes; None where it is not there yet.

        Raises:
            BadInput: it is not kept any more, or the job's nodes are another user's.
        """
        path = self._path(name, version)
        if version >= 1 and self._client.stat(path, watch) is not None:
            try:
                return self._client.get(path)[0]
            except NoNode:
                pass  # removed in between
        latest = self.latest(name)
        if version <= latest - KEPT or version < 1:
            raise BadInput(
                "{}: version {} is not kept any more, the latest is {}: begin again after "
                "that".format(name, version, latest)
            )
        return None

    def next(self, name: str, after: int, seconds: float) -> Optional[Configuration]:
        """Waits for the version that follows `after`.

        Args:
            name: of the configuration.
            after: a version; 0 for the first one.
            seconds: how long to wait.

        Returns:
            A `Configuration`; None if it is not there in time.

        Raises:
            BadInput: it is not kept any more, or the job's nodes are another user's.
        """
        deadline = time.monotonic() + seconds
        while True:
            told = threading.Event()
            try:
                value = self.read(name, after + 1, told.set)
            except Unavailable:  # the connection comes back, or the time is over
                value = None
            if value is not None:
                return Configuration(after + 1, json_text.loads(value.decode("utf-8")))
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            told.wait(min(left, _LOOK_AGAIN))

    def _folder(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise UsageError(
                "{!r} is not a configuration's name: letters, digits, '.', '_' and '-'".format(name)
            )
        self._client.own(self._root)
        return "{}/configurations/{}".format(self._root, name)

    def _path(self, name: str, version: int) -> str:
        return "{}/{:09}".format(self._folder(name), version)


def _encoded(name: str, document: Any) -> bytes:
    try:
        value = json.dumps(document, sort_keys=True, allow_nan=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise UsageError("{}: JSON cannot hold this document: {}".format(name, error)) from error
    if len(value) > LARGEST:
        raise UsageError(
            "{}: the document has {:,} bytes of JSON and may have {:,}; publish a file, and its "
            "digest here".format(name, len(value), LARGEST)
        )
    return value
