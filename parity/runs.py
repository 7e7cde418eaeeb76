"""Several training runs a side: what the seeds do, kept apart from what the choice of rows does.

One run of each model cannot tell a changed model from a changed seed. With k_A and k_B runs,

    delta       = mean AUC of B's runs - mean AUC of A's runs
    Var(delta)  = s2_A / k_A + s2_B / k_B + s2_rows

where s2_A and s2_B are the variances of the runs' AUCs within a side, and s2_rows is the paired
variance of the runs' mean placements (parity.stats.delong). Where a side has one run, the other
side's variance stands for it. The interval takes Student's t with Satterthwaite's degrees of
freedom.

The control compares the baseline's runs with one another: if two runs of one pipeline differ by
more than the margin, a single pair of models proves nothing about the pipelines.
"""

import dataclasses
import itertools
import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.comparison import compare_rows, sample_of
from parity.doubts import of_runs
from parity.inputs.checks import Column, check_margin, check_scores
from parity.inputs.rows import Rows, checked_rows
from parity.result import Comparison, Control, TrainingNoise
from parity.stats.delong import spread
from parity.stats.equivalence import POWER, Interval, Verdict, at_least, judge, resolution
from parity.stats.level import alpha
from parity.stats.ranking import rank
from parity.stats.rare_failures import RareFailures, notes_on_carriers, rare_failures, settle
from parity.stats.student import quantile
from parity.verified import Record, read_record
from semisync.common.errors import UsageError

MOST_RUNS = 1000  # beyond which asking for more runs is no advice


class _Side(NamedTuple):
    """The runs of one model."""

    aucs: np.ndarray  # float64 (runs,)
    placements: np.ndarray  # float64 (n,), mean over the runs

    @property
    def runs(self) -> int:
        return len(self.aucs)

    @property
    def variance(self) -> Optional[float]:
        """Between runs; None for a single one."""
        return float(self.aucs.var(ddof=1)) if self.runs > 1 else None

    @property
    def seed_sd(self) -> Optional[float]:
        """Standard deviation between runs; None for a single one."""
        return None if self.variance is None else math.sqrt(self.variance)


def compare_runs(
    labels: Any,
    baselines: Sequence[Any],
    candidates: Sequence[Any],
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
    verified: Optional[Record] = None,
) -> Comparison:
    """Is the candidate pipeline's mean AUC within `margin` of the baseline pipeline's?

    Args:
        labels, margin, clusters, weights, verified: as for `parity.compare`.
        baselines: the scores of each training run of the baseline, each (n,), on the same rows.
        candidates: the same for the candidate; at least one side has two runs.

    Returns: a Comparison whose delta, standard error, interval and verdict cover seeds and rows,
    with `training` set. AUCs are means over runs; the figures beside them are the first run's.

    Raises: BadInput and UsageError as `parity.compare`; UsageError for one run a side.
    """
    if not baselines or not candidates or len(baselines) + len(candidates) < 3:
        raise UsageError(
            f"{len(baselines)} baseline and {len(candidates)} candidate runs are given; training "
            "noise needs a run a side and two of one; for one run of each use parity.compare"
        )
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    rows = checked_rows(labels, baselines[0], candidates[0], clusters, weights)
    single = compare_rows(rows, margin, record)
    old, new = _side(baselines, "baselines", rows), _side(candidates, "candidates", rows)
    delta = float(new.aucs.mean() - old.aucs.mean())
    moved = new.placements - old.placements
    by_rows = spread(moved, delta, rows.positive, rows.weights, rows.clusters)
    observations = by_rows.observations
    parts = [*_by_seeds(old, new), (by_rows.standard_error**2, max(1.0, by_rows.freedom))]

    error, degrees = satterthwaite(parts)
    half = quantile(1 - alpha(), degrees) * error
    interval = at_least(Interval(delta - half, delta + half), delta, resolution(observations))
    rare = rare_failures(sample_of(rows, old.placements, by_rows), margin)
    verdict = settle(interval, margin, rare, record)
    noise = _noise(old, new, by_rows.standard_error, parts, margin)
    return dataclasses.replace(
        single,
        verdict=verdict,
        delta=delta,
        standard_error=error,
        interval=interval,
        baseline=dataclasses.replace(single.baseline, auc=float(old.aucs.mean())),
        candidate=dataclasses.replace(single.candidate, auc=float(new.aucs.mean())),
        standard_error_independent=by_rows.independent,
        design_effect=by_rows.design_effect,
        rows_to_settle=_rows_to_settle(interval, rare, verdict, margin),
        rare_failures=rare,
        training=noise,
        warnings=of_runs(baselines, candidates),
        notes=(
            *_notes_on_copies(baselines, candidates),
            *_notes(noise, judge(interval, margin), margin),
            *notes_on_carriers(rare, interval, margin),
        ),
    )


def _rows_to_settle(
    interval: Interval, rare: RareFailures, verdict: Verdict, margin: float
) -> Optional[int]:
    """Rows where only they are missing, for rare faults; None where runs may be."""
    inside = judge(interval, margin) is Verdict.EQUIVALENT
    return rare.rows_to_exclude if inside and verdict is Verdict.INCONCLUSIVE else None


def _noise(
    old: _Side,
    new: _Side,
    rows_error: float,
    parts: Sequence[Tuple[float, float]],
    margin: float,
) -> TrainingNoise:
    """The figures to report of the runs.

    Args:
        rows_error: standard error of the difference from the choice of the rows.
        parts: of the variance of the difference, as for `satterthwaite`; the rows' comes last.
    """
    *by_seeds, by_rows = parts
    return TrainingNoise(
        baseline_aucs=tuple(old.aucs.tolist()),
        candidate_aucs=tuple(new.aucs.tolist()),
        seed_sd=(old.seed_sd, new.seed_sd),
        standard_error_rows=rows_error,
        standard_error_seeds=math.sqrt(sum(variance for variance, _ in by_seeds)),
        degrees_of_freedom=satterthwaite(parts)[1],
        control=_control(old.aucs, margin),
        power=power(parts, margin),
        runs_to_settle=runs_to_settle(_variances(old, new), by_rows, margin),
    )


def satterthwaite(parts: Sequence[Tuple[float, float]]) -> Tuple[float, float]:
    """Standard error and degrees of freedom of a sum of (variance, its degrees of freedom)."""
    total = sum(variance for variance, _ in parts)
    if not total:
        return 0.0, float(min(df for _, df in parts))
    freedom = total**2 / sum(variance**2 / df for variance, df in parts)
    return math.sqrt(total), freedom


def power(parts: Sequence[Tuple[float, float]], margin: float) -> float:
    """Chance that two equal pipelines are found EQUIVALENT with these variances.

    The estimated error varies about the true one as the root of a chi-square over its degrees of
    freedom; the chance is the mean over that.
    """
    error, freedom = satterthwaite(parts)
    if not error:
        return 1.0
    tail = quantile(1 - alpha(), freedom)
    spread_out = 6 * math.sqrt(2 / freedom)
    # Of the estimated variance to the true one.
    ratios = np.linspace(max(1e-4, 1 - spread_out), 1 + spread_out, 801)
    density = (freedom / 2 - 1) * np.log(ratios) - freedom * ratios / 2
    share = np.exp(density - density.max())
    room = (margin - tail * error * np.sqrt(ratios)) / error
    passes = np.array([max(0.0, math.erf(value / math.sqrt(2))) for value in room])
    return float((share * passes).sum() / share.sum())


def runs_to_settle(
    variances: Sequence[float], by_rows: Tuple[float, float], margin: float
) -> Optional[int]:
    """Runs a side that give equal pipelines `POWER`; None where only more rows could."""

    def enough(runs: int) -> bool:
        parts = [(value / runs, runs - 1) for value in variances]
        return power([*parts, by_rows], margin) >= POWER

    if power([by_rows], margin) < POWER or not enough(MOST_RUNS):
        return None
    low, high = 1, MOST_RUNS  # low does not suffice: a single run shows no variance
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _side(runs: Sequence[Any], name: str, rows: Rows) -> _Side:
    """Ranks each run's scores."""
    aucs: List[float] = []
    total = np.zeros(len(rows.positive))
    for index, run in enumerate(runs):
        column = Column(f"{name}[{index}]")
        scores = rows.aligned(check_scores(run, column), column)
        ranking = rank(scores, rows.positive, rows.weights)
        aucs.append(ranking.area())
        total += ranking.placements()
    return _Side(np.array(aucs), total / len(runs))


def _variances(old: _Side, new: _Side) -> List[float]:
    """Between the runs of either side; the other side's where a side has one run."""
    known = [side.variance for side in (old, new) if side.variance is not None]
    return [known[0] if side.variance is None else side.variance for side in (old, new)]


def _by_seeds(old: _Side, new: _Side) -> List[Tuple[float, float]]:
    """What the seeds add to the variance of the difference, with its degrees of freedom."""
    return [
        (variance / side.runs, side.runs - 1 or other.runs - 1)
        for variance, side, other in zip(_variances(old, new), (old, new), (new, old))
    ]


def _control(aucs: np.ndarray, margin: float) -> Optional[Control]:
    gaps = [abs(one - other) for one, other in itertools.combinations(aucs.tolist(), 2)]
    if not gaps:
        return None
    beyond = sum(gap > margin for gap in gaps)
    return Control(len(gaps), float(np.mean(gaps)), max(gaps), beyond)


def _notes_on_copies(*sides: Sequence[Any]) -> Tuple[str, ...]:
    """Of either side that has a run twice."""
    return tuple(
        f"Two of the {name}'s runs have the same scores: one run given twice makes the seeds look "
        "more alike than they are."
        for name, runs in zip(("baseline", "candidate"), sides)
        if any(np.array_equal(one, other) for one, other in itertools.combinations(runs, 2))
    )


def _notes(noise: TrainingNoise, verdict: Verdict, margin: float) -> Tuple[str, ...]:
    notes = []
    if noise.control is not None:
        notes.append(
            f"Control: of {noise.control.pairs} pairs of the baseline's own runs, "
            f"{noise.control.beyond_margin} differ by more than the margin, the farthest by "
            f"{noise.control.largest:.2g}."
        )
    if verdict is Verdict.INCONCLUSIVE:
        notes.append(
            "No number of runs settles it on these rows: compare more rows."
            if noise.runs_to_settle is None
            else f"About {noise.runs_to_settle} runs a side would find equal pipelines equivalent "
            "four times out of five."
        )
    return tuple(notes)
