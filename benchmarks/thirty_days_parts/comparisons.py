"""Comparisons of the seeds' scores: pooled, by day, and the control.

    torchrec   TorchRec against exact TensorFlow: the same rows in the same steps
    semi-sync  TorchRec against the semi-synchronous job that goes on: what staleness adds
    whole      TorchRec against a job of exact TensorFlow from the first day on
    control    exact TensorFlow of a seed against that of the next seed: A against A'; its sign says
               nothing, so that its means are of absolute values

A seed's differences are paired: both sides go on from one checkpoint. So are their mean's.
"""

from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np
import pyarrow.parquet as pq

import parity
from benchmarks.harness.seeds import MARGIN, paired


class Found(NamedTuple):
    """A comparison, with a value per seed.

    Attributes:
        deltas: candidate minus baseline.
        verdicts: of `parity.compare`, by user.
        days: parity's tables.
    """

    name: str
    baseline: List[float]
    candidate: List[float]
    deltas: List[float]
    verdicts: List[str]
    days: List[Any]

    @property
    def signed(self) -> bool:
        """Whether its sign says something."""
        return self.name != "control"

    def by_day(self, figure: str = "delta") -> Dict[int, float]:
        """{day: the mean over the seeds}, of absolute differences where their sign says nothing."""
        table = np.array([[getattr(part, figure) for part in one.days] for one in self.days])
        means = np.mean(table if self.signed else np.abs(table), axis=0)
        return dict(zip((int(part.name) for part in self.days[0].days), means.tolist()))

    def slope(self) -> Tuple[float, float]:
        """(AUC per day, its standard error) of the means by day."""
        days, deltas = zip(*self.by_day().items())
        if len(days) < 3:
            return 0.0, float("nan")
        (slope, _), covariance = np.polyfit(days, deltas, 1, cov=True)
        return float(slope), float(np.sqrt(covariance[0, 0]))

    def over_seeds(self) -> Any:
        """The mean difference with its 95 % interval: seeds.Difference."""
        return paired(dict(enumerate(self.candidate)), dict(enumerate(self.baseline)))


class Rows(NamedTuple):
    """A side's rows, sorted by key."""

    label: np.ndarray
    day: np.ndarray
    score: np.ndarray


def read(path):
    """The rows of a file of scores; logits, which sigmoids would round."""
    table = pq.read_table(path).sort_by("key")
    return Rows(*(table[name].to_numpy() for name in ("label", "day", "logit")))


def compared(name, sides, users, verified):
    """Compares the (baseline, candidate) paths of each seed; returns a `Found`.

    Args:
        users: by key, for the clusters.
        verified: the record of each seed's conversion, or None.
    """
    found = Found(name, [], [], [], [], [])
    for (old, new), record in zip(sides, verified):
        baseline, candidate = read(old), read(new)
        columns = (baseline.label, baseline.score, candidate.score)
        one = parity.compare(*columns, margin=MARGIN, clusters=users, verified=record)
        found.baseline.append(one.baseline.auc)
        found.candidate.append(one.candidate.auc)
        found.deltas.append(one.delta)
        found.verdicts.append(one.verdict.name)
        found.days.append(parity.compare_days(*columns, baseline.day, MARGIN, users))
    return found


def all_of(seeds):
    """The comparisons of the seeds (`stages.Seed`): whole only if planned, control if several."""
    table = pq.read_table(seeds[0].path("exact.parquet")).sort_by("key")
    users = table["user"].to_numpy()

    def sides(baseline, candidate):
        return [(one.path(baseline), one.path(candidate)) for one in seeds]

    verified = [one.path("verified.json") for one in seeds]
    found = [
        compared("torchrec", sides("exact.parquet", "torchrec.parquet"), users, verified),
        compared("semi-sync", sides("semi.parquet", "torchrec.parquet"), users, verified),
    ]
    if seeds[0].plan.whole:
        found.append(compared("whole", sides("whole.parquet", "torchrec.parquet"), users, verified))
    if len(seeds) > 1:
        exact = [one.path("exact.parquet") for one in seeds]
        control = list(zip(exact, exact[1:] + exact[:1]))
        found.append(compared("control", control, users, verified))
    return found
