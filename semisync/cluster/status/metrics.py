"""The status as Prometheus reads it: the text exposition format, version 0.0.4.

Counters start over with each chief, as Prometheus expects of a process that was restarted; take
rates of them rather than the gauges where you have Prometheus.
"""

from typing import Any, Dict, Iterator, List, Optional, Tuple

from semisync.cluster.status.document import age

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0, 1, 2, 4, 8, 16, 32, 64)
_Labels = Tuple[Tuple[str, str], ...]
_Sample = Tuple[str, _Labels, Optional[float]]


def metrics(document: Dict[str, Any]) -> str:
    """The document as an exposition."""
    job = (("job_id", document["job"]),)  # Prometheus itself sets the label `job`
    shown: List[str] = []
    for name, kind, help, samples in _families(document):
        present = [
            (suffix, labels, value) for suffix, labels, value in samples if value is not None
        ]
        if not present:
            continue
        shown += ["# HELP {} {}".format(name, help), "# TYPE {} {}".format(name, kind)]
        shown += [_line(name + suffix, job + labels, value) for suffix, labels, value in present]
    return "\n".join(shown) + "\n"


def _families(document: Dict[str, Any]) -> Iterator[Tuple[str, str, str, List[_Sample]]]:
    cluster, training = document["cluster"], document["training"]
    if cluster is not None:
        for name, help, value in (
            ("leader_epoch", "Grows with every leader.", cluster["epoch"]),
            ("generation", "Grows when all members start over.", cluster["generation"]),
            ("members", "Members that are there.", len(cluster["members"])),
            ("has_leader", "1 while a member leads.", int(cluster["leader"] is not None)),
            ("waiting_for", "Members that the job misses.", len(cluster["waiting_for"])),
        ):
            yield "semisync_" + name, "gauge", help, [("", (), value)]
    if training is not None:
        yield from _training(training, age(document))


def _training(
    training: Dict[str, Any], seconds: Optional[float]
) -> Iterator[Tuple[str, str, str, List[_Sample]]]:
    for name, help, value in (
        ("report_age_seconds", "Since the chief last said something.", seconds),
        ("global_step", "Global batches applied.", training["global_step"]),
        ("steps_per_second", "Global steps per second.", training["steps_per_second"]),
        ("batches_per_second", "Batches per second.", training["batches_per_second"]),
        ("batches_per_step", "Batches in a global batch.", training["batches_per_step"]),
        ("pending_batches", "Batches that wait for their global batch.", training["pending"]),
        ("workers", "Workers of which the chief has heard.", len(training["workers"])),
    ):
        yield "semisync_" + name, "gauge", help, [("", (), value)]
    fates: List[_Sample] = [
        ("", (("fate", name),), count) for name, count in sorted(training["fates"].items())
    ]
    yield "semisync_batches_total", "counter", "Batches by what became of them.", fates
    name, help = "semisync_batch_staleness", "Global steps between reading and applying."
    yield name, "histogram", help, _histogram(training["staleness"])


def _histogram(staleness: Dict[str, int]) -> List[_Sample]:
    counts = [(int(steps), count) for steps, count in staleness.items()]
    samples: List[_Sample] = [
        ("_bucket", (("le", str(most)),), sum(count for steps, count in counts if steps <= most))
        for most in _BUCKETS
    ]
    total = sum(count for _, count in counts)
    samples.append(("_bucket", (("le", "+Inf"),), total))
    samples.append(("_sum", (), sum(steps * count for steps, count in counts)))
    samples.append(("_count", (), total))
    return samples


def _line(name: str, labels: _Labels, value: Optional[float]) -> str:
    inner = ",".join('{}="{}"'.format(label, _escaped(text)) for label, text in labels)
    return "{}{{{}}} {}".format(name, inner, value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
