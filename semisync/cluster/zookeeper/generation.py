"""The members on which a job counts, in a document that the leader publishes: ROOT/generation.

A generation is a growing number, the ids of the members that belong to it, and whatever else all
should know alike. A leader publishes it under its epoch; the others watch the node, and see
generations in order. A read may be older than the published generation, never out of order.
"""

import json
from typing import Any, Dict, NamedTuple, Optional

from semisync.cluster.zookeeper.client import (
    Callback,
    Client,
    Create,
    NoNode,
    Put,
)
from semisync.cluster.zookeeper.leader import Deposed, Election
from semisync.cluster.zookeeper.values import read_object


class Generation(NamedTuple):
    """A published generation.

    Attributes:
        number: grows when the members must start over.
        members: {name: id}.
        content: further shared state, a dict that JSON can hold.
        epoch: of the leader that published it.
        version: of the node; grows with everything that is published.
    """

    number: int
    members: Dict[str, str]
    content: Dict[str, Any]
    epoch: int = 0
    version: int = -1


def read(client: Client, root: str, watch: Optional[Callback] = None) -> Optional[Generation]:
    """The newest generation, or None; `watch` runs once, when another is published.

    Raises:
        BadInput: the node does not hold one.
    """
    try:
        value, stat = client.get(_path(root), watch)
    except NoNode:
        if client.stat(_path(root), watch) is None:
            return None
        return read(client, root, watch)
    kinds = {"number": int, "members": dict, "content": dict, "epoch": int}
    held = read_object(_path(root), value, **kinds)
    return Generation(**{key: held[key] for key in kinds}, version=stat.version)


def publish(election: Election, root: str, generation: Generation) -> None:
    """Publishes it in place of the one with its version; version -1: as the first.

    Raises:
        Deposed: this process does not lead.
        BadVersion, NodeExists: it was made from an older generation.
    """
    epoch = election.epoch
    if epoch is None:
        raise Deposed("only the leader publishes a generation")
    path, fields = _path(root), generation._replace(epoch=epoch)._asdict()
    version = fields.pop("version")
    value = json.dumps(fields, sort_keys=True).encode()
    election.publish([Create(path, value) if version < 0 else Put(path, value, version)])


def _path(root):
    return root + "/generation"
