"""Membership: an ephemeral node per member, at ROOT/members/NAME.

A member:
1. makes its node, whose value is JSON with `id`, which no other process has, and what others should
   know of the member, such as its address;
2. looks again whenever its connection changes (`register`). If the node is gone, it makes it
   again. If the node is its own but of an earlier session, it removes exactly the version that it
   saw, and makes the node again: a node that is only set would vanish with the earlier session. If
   the node is another's, the name is taken.

A name is free again when its holder leaves, or `session_timeout` seconds after it was lost.
"""

import json
from typing import Any, Dict, List, Optional, Sequence

from semisync.cluster.zookeeper.client import (
    BadVersion,
    Callback,
    Client,
    NodeExists,
    NoNode,
    StoreError,
)
from semisync.cluster.zookeeper.values import read_object


class Taken(StoreError):
    """Another process has the name; `holder` is its record."""

    def __init__(self, name, holder):
        super().__init__("{} is there already: {}".format(name, json.dumps(holder)))
        self.holder = holder


class Membership:
    """A name that is held, or was lost to another.

    Args:
        client: a `Client`.
        root: path of the job.
        name: unique among the members.
        about: a dict that JSON can hold, with `id`.

    Raises:
        BadInput, Unavailable: see `Client.own`.
    """

    def __init__(self, client: Client, root: str, name: str, about: Dict[str, Any]) -> None:
        client.own(root)
        self.name = name
        self._client = client
        self._path = path_of(root, name)
        self._about = about

    def register(self) -> None:
        """Makes sure that the node is there and belongs to this session.

        Raises:
            Taken: the node belongs to another process.
            Unavailable: call again when the connection is there.
        """
        while True:
            try:
                value, stat = self._client.get(self._path)
            except NoNode:
                if self._made():
                    return
                continue
            holder = read_object(self._path, value, id=str)
            if holder["id"] != self._about["id"]:
                raise Taken(self.name, holder)
            if stat.owner == self._client.session:
                return
            # Of this member's earlier session, with which the node would vanish.
            try:
                self._client.delete(self._path, stat.version)
            except (NoNode, BadVersion):
                continue

    def _made(self):
        try:
            self._client.create(self._path, json.dumps(self._about).encode(), ephemeral=True)
        except NodeExists:
            return False
        return True

    def leave(self) -> None:
        """Removes the node, if it is this member's."""
        try:
            value, stat = self._client.get(self._path)
            if read_object(self._path, value, id=str)["id"] == self._about["id"]:
                self._client.delete(self._path, stat.version)
        except (NoNode, BadVersion):
            pass  # the session is over, or another has the name


def path_of(root: str, name: str) -> str:
    """The node of a member."""
    return "{}/members/{}".format(root, name)


def members(
    client: Client, root: str, watch: Optional[Callback] = None
) -> Dict[str, Dict[str, Any]]:
    """Every member's record, by name; `watch` runs once, when one comes or leaves."""
    return about(client, root, names(client, root, watch))


def names(client: Client, root: str, watch: Optional[Callback] = None) -> List[str]:
    """The members' names, sorted; `watch` runs once, when one comes or leaves."""
    above = "{}/members".format(root)
    client.ensure(above)
    return client.children(above, watch)


def about(client: Client, root: str, some: Sequence[str]) -> Dict[str, Dict[str, Any]]:
    """The records of some members, of those present."""
    found = client.get_many([path_of(root, name) for name in some])
    return {
        path.rpartition("/")[2]: read_object(path, value, id=str)
        for path, (value, _) in found.items()
    }
