"""The versions of a job's configuration, in ZooKeeper: small documents, each published once.

Version N is the node ROOT/configuration/N, which never changes.

1. A publisher names the latest version and makes the one after it. Of two at once one succeeds,
   and the other is refused (`Conflict`).
2. A launcher looks for the newest version, and is notified of the next one. The configuration with
   which a run begins is a file of its manifest: versions up to the latest one of that moment are
   of earlier runs.
3. The KEPT newest versions are kept.

A document is JSON, at most LARGEST bytes of it: ZooKeeper is no place for files.
"""

from typing import Any, List, NamedTuple, Optional

from semisync.cluster.zookeeper.client import (
    Check,
    Client,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
)
from semisync.cluster.zookeeper.values import foreign
from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError

KEPT = 100
LARGEST = 512 << 10  # bytes


class Configuration(NamedTuple):
    """A version, from 1 on, and the bytes of its document."""

    version: int
    document: bytes


class Conflict(UsageError):
    """The latest version is not the one after which to publish."""

    def __init__(self, after: int, latest: int) -> None:
        super().__init__(
            "the configuration is at version {}, not {}: look at that one, then publish after "
            "it".format(latest, after)
        )


def checked(document: bytes, where: str) -> bytes:
    """A document that may be handed out.

    Raises:
        BadInput: it is too long, or not JSON.
    """
    if len(document) > LARGEST:
        raise BadInput(
            "{}: a configuration has at most {:,} bytes, not {:,}; --ship hands out files".format(
                where, LARGEST, len(document)
            )
        )
    try:
        json_text.loads(document.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput("{}: a configuration is JSON, in UTF-8: {}".format(where, error)) from error
    return document


def publish(client: Client, root: str, document: bytes, after: int) -> int:
    """Makes the version that follows `after`, which is the latest; returns its number.

    Raises:
        Conflict: it is not.
        BadInput: the job's nodes are another user's.
    """
    client.own(root)
    client.ensure(_folder(root))
    found = latest(client, root)
    if found != after:
        raise Conflict(after, found)
    operations: List[Operation] = [Create(_path(root, after + 1), document)]
    if after:  # fails if it was removed, in which case it is not the latest
        operations.insert(0, Check(_path(root, after), 0))
    oldest = _path(root, after + 1 - KEPT)
    if after >= KEPT and client.stat(oldest) is not None:
        operations.append(Delete(oldest, -1))  # whatever its version
    try:
        client.commit(operations)
    except (NodeExists, NoNode):
        raise Conflict(after, latest(client, root)) from None
    return after + 1


def latest(client: Client, root: str, watch: Any = None) -> int:
    """The number of the newest version, 0 where there is none; `watch` runs at the next one."""
    try:
        versions = client.children(_folder(root), watch)
    except NoNode:
        client.ensure(_folder(root))
        return latest(client, root, watch)
    for version in versions:
        if not version.isdecimal():
            raise foreign("{}/{}".format(_folder(root), version))
    return max(map(int, versions), default=0)


def newest(client: Client, root: str, after: int, watch: Any = None) -> Optional[Configuration]:
    """The newest version, if it is later than `after`; `watch` runs at the next one."""
    while True:
        number = latest(client, root, watch)
        if number <= after:
            return None
        try:
            return Configuration(number, client.get(_path(root, number))[0])
        except NoNode:  # removed in between, since there are newer ones
            continue


def _folder(root: str) -> str:
    return root + "/configuration"


def _path(root: str, version: int) -> str:
    return "{}/{:09}".format(_folder(root), version)
