"""Restricts a job's nodes to its user alone, whoever was there before.

In ZooKeeper a node's access list says who sets its value, makes and removes nodes below it, and
changes the list. Lists are not inherited, and "/" is usually everybody's. So a client that has a
user (`Access.auth`) takes a job over before it uses its nodes:

1. It makes ROOT with the user's list, unless it is there.
2. It gives ROOT the user's list where it has another. From then on nobody else makes or removes
   anything right below. Then it does so with every node there, and so on. It removes ephemeral
   nodes, whose sessions are somebody else's. Where it may not, the job is refused.
3. A node that always had the user's list (its list was changed 0 times) has below it only what the
   user made: it is left out.
4. It makes ROOT/owned, which is never removed. Who may remove nodes above ROOT can remove empty
   ones alone, so ROOT stays from then on. If by now it is another node than in 2., it begins again.

Whatever is made later gets the user's list, below nodes that have it: no other check is needed.
A node's contents are kept, and a warning says how many others could have written.
"""

import contextlib
import logging
from typing import Any, Callable, List, Set, Tuple

from semisync.cluster.zookeeper import client
from semisync.common.errors import BadInput

OWNED = "owned"
_TIMES = 10
_MOST = 50000  # nodes to take over
_logger = logging.getLogger("semisync.cluster.zookeeper")


class Ownership:
    """The jobs known to be a user's alone, as checked over one connection.

    Args:
        ask: function of the name of a request of kazoo's client and its arguments; returns the
            answer or raises a `StoreError`.
        access_list: kazoo's, of the user alone.
    """

    def __init__(self, ask: Callable[..., Any], access_list: List[Any]) -> None:
        self._ask, self._list = ask, access_list
        self._owned: Set[str] = set()

    def take(self, root: str) -> None:
        """See `Client.own`."""
        if root in self._owned:
            return
        for _ in range(_TIMES):
            with contextlib.suppress(client.NoNode, client.BadVersion):  # somebody has removed it
                if self._is_taken(root):
                    self._owned.add(root)
                    return
        raise BadInput(
            "ZooKeeper, {}: somebody removes it whenever this job has made it: give the job a path "
            "that others may not write to".format(root)
        )

    def _is_taken(self, root: str) -> bool:
        try:
            self._ask("ensure_path", root)
            made = self._take_all(root)
            self._ask("ensure_path", "{}/{}".format(root, OWNED))
        except client.Forbidden as error:
            raise BadInput(
                "{}: it or the node above is another user's, who may write there: give the job "
                "another id or path, or have the node removed".format(error)
            ) from None
        now = self._ask("exists", root)
        return now is not None and now.czxid == made

    def _take_all(self, root: str) -> int:
        """Takes ROOT and all below over; returns the transaction in which ROOT was made."""
        top, changed, below = self._take_one(root)
        left, looked = below, 1
        while left:
            looked += 1
            if looked > _MOST:
                raise BadInput(
                    "ZooKeeper, {}: it has more than {:,} nodes that others could write to: remove "
                    "it, or give the job another id".format(root, _MOST)
                )
            with contextlib.suppress(client.NoNode):  # a process of the user has removed it
                _, was_open, below = self._take_one(left.pop())
                changed += was_open
                left += below
        if changed:
            _logger.warning(
                "ZooKeeper, %s: others could write to %d of its nodes, which are this user's alone "
                "from now on; if others did, end the job and remove them",
                root,
                changed,
            )
        return top.czxid

    def _take_one(self, path: str) -> Tuple[Any, int, List[str]]:
        """Takes a node over; returns its state, 1 if it was open, and the nodes to look at next."""
        found, stat = self._ask("get_acls", path)
        was_open = found != self._list
        if was_open and stat.ephemeralOwner:
            self._ask("delete", path)
            return stat, 1, []
        if was_open:
            self._ask("set_acls", path, self._list)
        elif not stat.aversion:
            return stat, 0, []
        names = self._ask("get_children", path)
        return stat, int(was_open), ["{}/{}".format(path, name) for name in names]
