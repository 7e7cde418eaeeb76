"""The document that a job publishes about itself: JSON of a few kilobytes, without anything secret.

schema            1
job               its id
at                when it was made, in seconds since 1970
cluster           null, or what the launchers know:
    leader        the name of the member that leads, or null
    epoch         grows with every leader
    generation    grows when all members begin anew; 0 before the first
    members       {name: host}, of those that are there
    waiting_for   names of those without which the job cannot begin or go on
    outcome       null while it runs, then a sentence
training          null, or what the chief said last:
    at            when, in seconds since 1970
    global_step   the last global batch that was applied; null before the first
    steps_per_second, batches_per_second    over the last seconds; null at the beginning
    batches_per_step    M
    pending       batches that wait for their global batch
    workers       {name: seconds since it was last heard of}
    fates         {fate: batches}, since this chief began
    staleness     {global steps: batches}, since this chief began
"""

import json
from typing import Any, Dict, Optional

from semisync.common.errors import BadInput

SCHEMA = 1
QUIET = 15.0  # seconds after which what the chief said is old
_CLUSTER = ("leader", "epoch", "generation", "members", "waiting_for", "outcome")
_TRAINING = (
    "at",
    "global_step",
    "steps_per_second",
    "batches_per_second",
    "batches_per_step",
    "pending",
    "workers",
    "fates",
    "staleness",
)


def document(
    job: str, at: float, cluster: Optional[Dict[str, Any]], training: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """The document of its parts."""
    return {"schema": SCHEMA, "job": job, "at": at, "cluster": cluster, "training": training}


def read_document(data: bytes, where: str) -> Dict[str, Any]:
    """The document whose JSON is `data`.

    Args:
      where: whence it comes, for the sentence.

    Raises:
      BadInput: it is none, or of another schema.
    """
    try:
        found = json.loads(data.decode("utf-8"))
        right = found["schema"] == SCHEMA and isinstance(found["job"], str)
        for part, fields in (("cluster", _CLUSTER), ("training", _TRAINING)):
            value = found[part]
            right = right and (value is None or all(field in value for field in fields))
    except (ValueError, KeyError, TypeError, RecursionError):
        right = False
    if not right:
        raise BadInput("{}: it tells no job's status of schema {}".format(where, SCHEMA))
    return found


def age(document: Dict[str, Any]) -> Optional[float]:
    """Seconds since the chief last said something; None if it never did."""
    training = document["training"]
    return None if training is None else max(0.0, document["at"] - training["at"])
