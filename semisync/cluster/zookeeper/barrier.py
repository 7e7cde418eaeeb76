"""Going on together: every member of a generation, or none.

The node ROOT/barriers/NAME-GENERATION has no value while the barrier is closed.

1. A member makes an ephemeral node of its name below it, and watches the barrier's value (`enter`).
   A member that dies meanwhile has not arrived.
2. The leader waits until there is a node for each member of the generation, and opens the barrier
   (`conduct`); at the deadline it breaks the barrier instead, and says who is missing. The value
   is written once and under the leader's epoch, so that all members read the same.
3. A new leader conducts again from the beginning: arrivals are kept.
4. A member waits as long as two leaders may; then it says itself who is missing.
"""

import contextlib
import json
import threading
import time
from typing import Optional

from semisync.cluster.zookeeper.client import (
    BadVersion,
    Client,
    NodeExists,
    NoNode,
    Put,
    Unavailable,
)
from semisync.cluster.zookeeper.generation import Generation
from semisync.cluster.zookeeper.leader import Deposed, Election
from semisync.common import json_text
from semisync.common.errors import SemisyncError

GATHER = 0.05  # seconds in which several arrivals are one piece of news
LOOK_AGAIN = 3.0  # seconds between two looks when nothing was told


class Broken(SemisyncError):
    """Not all members came in time; `missing` has their names."""

    def __init__(self, name, missing, seconds):
        super().__init__(
            "barrier {}: {} did not come within {:.0f} s".format(name, ", ".join(missing), seconds)
        )
        self.missing = missing


def enter(
    client: Client, root: str, name: str, generation: Generation, member: str, seconds: float
):
    """Waits until every member of the generation is here.

    Args:
        client: a `Client`.
        root: path of the job.
        name: of the barrier, which a generation passes once.
        generation: a `Generation`.
        member: name of this one.
        seconds: how long the leader waits for all.

    Raises:
        Broken: some did not come.
    """
    path, mine = (
        _path(root, name, generation),
        "{}/{}".format(_path(root, name, generation), member),
    )
    told = threading.Event()
    deadline = time.monotonic() + 2 * seconds
    arrived: Optional[int] = None  # the session with which this member has arrived
    while True:
        told.clear()
        verdict = b""
        with contextlib.suppress(Unavailable):
            if arrived is None or arrived != client.session:
                arrived = _arrive(client, mine)
            verdict = client.get(path, told.set)[0]
        if verdict:
            return _passed(name, json_text.loads(verdict), seconds)
        if time.monotonic() > deadline:
            raise Broken(name, _missing(client, path, generation) or ["the leader"], 2 * seconds)
        told.wait(min(LOOK_AGAIN, max(0.0, deadline - time.monotonic())))


def _arrive(client, path):
    """Makes the member's node; returns the session that it belongs to."""
    while True:
        try:
            client.create(path, b"", ephemeral=True)
        except NodeExists:
            stat = client.stat(path)
            if stat is None or stat.owner != client.session:  # of an earlier session
                with contextlib.suppress(NoNode, BadVersion):
                    client.delete(path, stat.version if stat else -1)
                continue
        return client.session


def _passed(name, verdict, seconds):
    if verdict["missing"]:
        raise Broken(name, verdict["missing"], seconds)


def conduct(
    election: Election, client: Client, root: str, name: str, generation: Generation, seconds: float
) -> bool:
    """The leader's part; returns True when the barrier has opened or was open.

    Raises:
        Broken: some did not come in time, or had not under an earlier leader.
        Deposed: another leads.
    """
    path = _path(root, name, generation)
    client.ensure(path)
    told = threading.Event()
    deadline = time.monotonic() + seconds
    while True:
        if election.epoch is None:
            raise Deposed("another process leads, and only the leader conducts the barrier")
        told.clear()
        verdict, stat = client.get(path)
        if not verdict:
            missing = _missing(client, path, generation, told.set)
            left = deadline - time.monotonic()
            if missing and left > 0:
                told.wait(min(left, 1.0))
                time.sleep(min(left, GATHER))
                continue
            verdict = json.dumps({"missing": missing}).encode()
            election.publish([Put(path, verdict, stat.version)])
        _passed(name, json_text.loads(verdict), seconds)
        return True


def _missing(client, path, generation, watch=None):
    here = set(client.children(path, watch))
    return sorted(set(generation.members) - here)


def _path(root, name, generation):
    return "{}/barriers/{}-{}".format(root, name, generation.number)
