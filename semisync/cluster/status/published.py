"""The status of a job in ZooKeeper: the launchers' records, and the chief's latest report.

All of it is read from where they write it down (`semisync.cluster.record`): ROOT/leader,
ROOT/members, ROOT/generation and ROOT/training.
"""

import time
from typing import Any, Dict, Optional

from semisync.cluster import record
from semisync.cluster.record import Shape, spoken
from semisync.cluster.status.document import document
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper import membership
from semisync.cluster.zookeeper.client import Client, NoNode
from semisync.common import json_text
from semisync.common.errors import BadInput


def read_status(client: Client, root: str, job: str) -> Dict[str, Any]:
    """The document of a job.

    Raises:
        BadInput: there is no such job.
    """
    if client.stat(root) is None:
        raise BadInput("there is no job {}: its launchers would keep {}".format(job, root))
    training = _value(client, root + "/training")
    return document(job, time.time(), _cluster(client, root), training)


def _cluster(client: Client, root: str) -> Dict[str, Any]:
    seat = _value(client, root + "/leader") or {}
    members = membership.members(client, root)
    generation = generations.read(client, root)
    named = {about["id"]: name for name, about in members.items()}
    leader = named.get(seat.get("id"))
    shape = next((about["shape"] for about in members.values() if "shape" in about), None)
    outcome = None if generation is None else record.outcome_of(generation)
    waiting = [n for n in Shape(**shape).required if n not in members] if shape else []
    return {
        "leader": leader and spoken(leader),
        "epoch": seat.get("epoch", 0),
        "generation": 0 if generation is None else generation.number,
        "members": {spoken(name): str(about.get("host", "")) for name, about in members.items()},
        "waiting_for": [] if outcome else [spoken(name) for name in waiting],
        "outcome": outcome and "{} (exit code {})".format(outcome["why"], outcome["code"]),
    }


def _value(client: Client, path: str) -> Optional[Dict[str, Any]]:
    try:
        value = client.get(path)[0]
    except NoNode:
        return None
    return json_text.loads(value.decode("utf-8")) if value else None
