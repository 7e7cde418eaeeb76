"""The status in a terminal, or as plain lines."""

from typing import Any, Dict, List

from semisync.cluster.status.document import QUIET, age

_BAR = 30  # characters


def lines(document: Dict[str, Any]) -> List[str]:
    """The document as lines for people."""
    shown = ["job {}".format(document["job"])]
    if document["cluster"] is not None:
        shown += _cluster(document["cluster"])
    if document["training"] is None:
        return [*shown, "training    the chief has said nothing so far"]
    return [*shown, *_training(document["training"], age(document) or 0.0)]


def _cluster(cluster: Dict[str, Any]) -> List[str]:
    leader = cluster["leader"] or "nobody"
    members = ["{} ({})".format(name, host) for name, host in sorted(cluster["members"].items())]
    shown = [
        "leader      {}, epoch {}".format(leader, cluster["epoch"]),
        "generation  {}".format(cluster["generation"] or "none so far"),
        "members     {}".format(", ".join(members) or "none"),
    ]
    if cluster["waiting_for"]:
        shown.append("waiting for {}".format(", ".join(cluster["waiting_for"])))
    if cluster["outcome"]:
        shown.append("ended       {}".format(cluster["outcome"]))
    return shown


def _training(training: Dict[str, Any], seconds: float) -> List[str]:
    old = "; the chief has said nothing for {:.0f} s".format(seconds) if seconds > QUIET else ""
    fates = ["{} {:,}".format(name, count) for name, count in training["fates"].items()]
    silent = [
        "{} ({:.0f} s)".format(name, s) for name, s in training["workers"].items() if s > QUIET
    ]
    shown = [
        "global step {}{}".format(number(training["global_step"]), old),
        "pace        {} global steps/s, {} batches/s, {} batches per step".format(
            number(training["steps_per_second"]),
            number(training["batches_per_second"]),
            training["batches_per_step"],
        ),
        "batches     {}".format(", ".join(fates) or "none"),
        "workers     {}{}".format(
            len(training["workers"]), "; silent: " + ", ".join(silent) if silent else ""
        ),
    ]
    return shown + histogram(training["staleness"])


def histogram(staleness: Dict[str, int]) -> List[str]:
    """A line per staleness: its share, and a bar."""
    return [
        "staleness {:>4}  {:5.1f} %  {}".format(steps, 100 * share, "#" * round(_BAR * share))
        for steps, share in shares(staleness)
    ]


def shares(staleness: Dict[str, int]) -> List[Any]:
    """(global steps, share of the batches) of each staleness; the tail beyond 15 in one."""
    total = sum(staleness.values())
    if not total:
        return []
    counts = sorted((int(steps), count) for steps, count in staleness.items())
    shown = [(str(steps), count / total) for steps, count in counts if steps < 16]
    tail = sum(count for steps, count in counts if steps >= 16)
    return shown + ([("16+", tail / total)] if tail else [])


def number(value: Any) -> str:
    """A number with few digits; a dash for none."""
    if value is None:
        return "-"
    return "{:,}".format(value) if isinstance(value, int) else "{:,.1f}".format(value)
