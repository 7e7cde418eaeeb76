"""The document that a job publishes about itself: JSON of a few kilobytes, without anything secret.

schema            1
job               its id
at                when it was made, in seconds since 1970
cluster           null, or the launchers' view:
    leader        the name of the member that leads, or null
    epoch         grows with every leader
    generation    grows when all members start over; 0 before the first
    members       {name: host}, of those that are there
    waiting_for   names of those without which the job cannot begin or go on
    outcome       null while it runs, then a sentence
training          null, or the chief's latest report:
    at            when, in seconds since 1970
    global_step   the last global batch that was applied; null before the first
    steps_per_second, batches_per_second    over the last seconds; null at the beginning
    batches_per_step    M
    pending       batches that wait for their global batch
    workers       {name: seconds since it was last heard of}
    fates         {fate: batches}, since this chief began
    staleness     {global steps: batches}, since this chief began

It is read from the nodes of launchers and chief in ZooKeeper (`semisync.cluster.record`):
ROOT/leader, ROOT/members, ROOT/generation and ROOT/training.
"""

import time
from typing import Any, Dict, Optional

from semisync.cluster import record
from semisync.cluster.record import Shape, spoken
from semisync.cluster.zookeeper import generation as generations
from semisync.cluster.zookeeper import membership
from semisync.cluster.zookeeper.client import Client, NoNode
from semisync.cluster.zookeeper.values import read_object
from semisync.common.errors import BadInput

SCHEMA = 1
QUIET = 15.0  # seconds after which the chief's report is old


def document(
    job: str, at: float, cluster: Optional[Dict[str, Any]], training: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """The document of its parts."""
    return {"schema": SCHEMA, "job": job, "at": at, "cluster": cluster, "training": training}


def age(document: Dict[str, Any]) -> Optional[float]:
    """Seconds since the chief's last report; None before the first."""
    training = document["training"]
    return None if training is None else max(0.0, document["at"] - training["at"])


def read_status(client: Client, root: str, job: str) -> Dict[str, Any]:
    """The document of a job.

    Raises:
        BadInput: there is no such job.
    """
    if client.stat(root) is None:
        raise BadInput("there is no job {}: its launchers would keep {}".format(job, root))
    training = _value(client, root + "/training", at=(int, float))
    return document(job, time.time(), _cluster(client, root), training)


def _cluster(client: Client, root: str) -> Dict[str, Any]:
    seat = _value(client, root + "/leader", epoch=int) or {}
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


def _value(client: Client, path: str, **kinds: Any) -> Optional[Dict[str, Any]]:
    try:
        value = client.get(path)[0]
    except NoNode:
        return None
    return read_object(path, value, **kinds) if value else None
