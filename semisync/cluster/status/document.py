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
"""

from typing import Any, Dict, Optional

SCHEMA = 1
QUIET = 15.0  # seconds after which the chief's report is old


def document(
    job: str, at: float, cluster: Optional[Dict[str, Any]], training: Optional[Dict[str, Any]]
) -> Dict[str, Any]:
    """The document of its parts."""
    return {"schema": SCHEMA, "job": job, "at": at, "cluster": cluster, "training": training}


def age(document: Dict[str, Any]) -> Optional[float]:
    """Seconds since the chief last said something; None if it never did."""
    training = document["training"]
    return None if training is None else max(0.0, document["at"] - training["at"])
