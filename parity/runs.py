"""Several training runs per side: the seeds' variance, apart from that of the choice of rows.

One run of each model cannot tell a changed model from a changed seed. With k_A and k_B runs,

    delta       = mean AUC of B's runs - mean AUC of A's runs
    Var(delta)  = s2_A / k_A + s2_B / k_B + s2_rows

where s2_A and s2_B are the variances of the runs' AUCs within a side, and s2_rows is the paired
variance of the runs' mean placements (parity.stats.delong). The interval takes Student's t with
Satterthwaite's degrees of freedom.

One run of a side cannot show how far its runs spread. Where that is known from elsewhere and
stated, it is the side's variance. Else the other side's variance, of k runs, stands for it, and
there is no verdict: where the true spreads differ, the interval may hold the truth in half of the
cases. They are one part then, s2 (1 / k + 1) with the k - 1 degrees of freedom of one estimate, or
fewer, since that is too narrow beside the rows' part (parity.stats.seeds).

The control compares the baseline's runs with one another: if two runs of one pipeline differ by
more than the margin, a single pair of models proves nothing about the pipelines.
"""

import dataclasses
import itertools
import math
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from parity.comparison import compare_rows, decision_fields, rows_needed, sample_of
from parity.doubts import of_ranking, of_rows, of_runs
from parity.inputs.checks import (
    Column,
    check_margin,
    check_not_label,
    check_same_order,
    check_scores,
)
from parity.inputs.rows import Rows, checked_rows
from parity.result import Comparison, Side, TrainingNoise
from parity.stats.delong import Spread, spread
from parity.stats.equivalence import Evidence, Reason, Verdict, judge
from parity.stats.intervals import HITS, resolution, student_interval
from parity.stats.rare_failures import Sample, notes_on_carriers, rare_failures
from parity.stats.roc import rank
from parity.stats.seeds import control_of, freedom_of_lone, power, runs_to_settle, satterthwaite
from parity.verified import Record, Verified, read_record
from semisync.common.errors import UsageError

_STATED = 1e9  # degrees of freedom of a variance that is known


class Runs(NamedTuple):
    """The runs of one model.

    Attributes:
        stated: the standard deviation between runs, of a single one where it is known.
    """

    aucs: np.ndarray  # float64 (runs,)
    tied_pairs: int  # the most of a run
    copied: bool  # whether two of them have the same scores
    stated: Optional[float] = None

    @property
    def runs(self) -> int:
        return len(self.aucs)

    @property
    def variance(self) -> Optional[float]:
        """The variance between runs; None for a single one, unless it is stated."""
        if self.runs > 1:
            return float(self.aucs.var(ddof=1))
        return None if self.stated is None else self.stated**2

    @property
    def lone(self) -> bool:
        """Whether the spread of its runs is unknown."""
        return self.variance is None

    @property
    def seed_sd(self) -> Optional[float]:
        """The standard deviation between runs; None where `variance` is."""
        return None if self.variance is None else math.sqrt(self.variance)


def compare_runs(
    labels: Any,
    baselines: Sequence[Any],
    candidates: Sequence[Any],
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
    verified: Optional[Record] = None,
    logits: Iterable[str] = (),
    seed_sd: Optional[float] = None,
) -> Comparison:
    """Is the candidate pipeline's mean AUC within `margin` of the baseline pipeline's?

    Args:
        labels, margin, clusters, weights, verified, logits: as for `parity.compare`.
        baselines: the scores of each training run of the baseline, each (n,), on the same rows.
        candidates: the same for the candidate; at least one side has two runs.
        seed_sd: the standard deviation of the AUC between runs of the side that has one, as it is
            known from elsewhere. Without it there is no verdict on such a side.

    Returns:
        A Comparison whose delta, standard error, interval and verdict cover seeds and rows, with
        `training` set. AUCs are means over runs; the figures beside them are the first run's.

    Raises:
        BadInput, UsageError: as `parity.compare`.
        UsageError: one run per side, or a `seed_sd` below 0 or of sides that have several each.

    Examples:
        >>> seeds = [candidate + 1e-3 * np.sin(seed + np.arange(4000)) for seed in range(3)]
        >>> comparison = parity.compare_runs(labels, [baseline], seeds, margin=0.02)
        >>> len(comparison.training.candidate_aucs)
        3
    """
    check_runs(len(baselines), len(candidates), seed_sd)
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    for name, runs in (("baselines", baselines), ("candidates", candidates)):
        check_same_order(labels, {f"{name}[{at}]": run for at, run in enumerate(runs)})
    rows = checked_rows(labels, baselines[0], candidates[0], clusters, weights, logits)
    single = compare_rows(rows, margin, record)
    old, from_old = _ranked(baselines, "baselines", rows, seed_sd)
    new, from_new = _ranked(candidates, "candidates", rows, seed_sd)
    delta = difference(old, new)
    moves = spread(from_new - from_old, delta, rows.positive, rows.weights, rows.clusters)
    found = Found(old, new, moves, sample_of(rows, from_old, moves))
    warnings = (*of_runs(_shared(baselines, candidates)), *of_rows(rows))
    return concluded_runs(single, found, warnings, record)


def check_runs(baselines: int, candidates: int, seed_sd: Optional[float]) -> None:
    """Refuses too few runs, given each side's number of them, and a stated spread that is none."""
    if not baselines or not candidates or baselines + candidates < 3:
        raise UsageError(
            f"{baselines} baseline and {candidates} candidate runs are given; training "
            "noise needs one run per side and two of one; for one run of each use parity.compare"
        )
    if seed_sd is not None:
        _check_stated(seed_sd, min(baselines, candidates))


def difference(old: Runs, new: Runs) -> float:
    """The difference of the mean AUCs, candidate - baseline."""
    return float(new.aucs.mean() - old.aucs.mean())


class Found(NamedTuple):
    """The rows' evidence on several runs, in memory or beyond it."""

    old: Runs
    new: Runs
    moves: Spread  # of the difference, by the rows' mean placements
    sample: Sample  # the inputs to the judgement of rare failures
    bound: Optional[float] = None  # certified, of the difference, where scores were counted


def concluded_runs(
    single: Comparison,
    found: Found,
    warnings: Sequence[str],
    verified: Optional[Verified],
    notes: Sequence[str] = (),
) -> Comparison:
    """The first runs' comparison, with the decision of all runs.

    Args:
        warnings, notes: of the runs and the rows.
        verified: the record that stands for the rows that rare faults take.
    """
    old, new, by_rows, margin = found.old, found.new, found.moves, single.margin
    # The rows' part comes last (parity.stats.seeds); below 1 its freedom counts as 1.
    parts = [*_by_seeds(old, new), (by_rows.standard_error**2, max(1.0, by_rows.freedom))]
    error, freedom = satterthwaite(parts)
    lone = old.lone or new.lone
    if lone:
        freedom = freedom_of_lone(parts)
    worst = {
        "baseline": _least_ranked(old, single.baseline),
        "candidate": _least_ranked(new, single.candidate),
    }
    flaw, doubted = of_ranking(worst, single.positives * (single.rows - single.positives))
    evidence = Evidence(
        delta=difference(old, new),
        standard_error=error,
        freedom=freedom,
        observations=by_rows.observations,
        narrowest=resolution(by_rows.observations),
        allowance=HITS * by_rows.step,
        bound=found.bound or 0.0,
        flaw=flaw,
        lone=lone,
    )
    rare = rare_failures(found.sample, margin)
    decision = decision_fields(evidence, rare, margin, verified)
    shares = _shares(old, new)
    noise = _noise(old, new, by_rows.standard_error, parts, freedom, margin)
    by_interval = judge(decision["interval"], margin)
    return dataclasses.replace(
        single,
        **decision,
        baseline=_mean_of(old, single.baseline, shares[0]),
        candidate=_mean_of(new, single.candidate, shares[1]),
        standard_error_independent=by_rows.independent,
        design_effect=by_rows.design_effect,
        rows_to_settle=_rows_to_settle(evidence, found, decision, single),
        training=noise,
        bound=found.bound,
        warnings=(*warnings, *doubted),
        notes=(
            *notes,
            *_notes_on_copies(old, new),
            *_notes_on_lone(old, new),
            *_notes(noise, by_interval, margin),
            *notes_on_carriers(rare, decision["reason"]),
        ),
    )


def _rows_to_settle(
    evidence: Evidence, found: Found, decision: Dict[str, Any], single: Comparison
) -> Optional[int]:
    """How many rows would decide; None if runs are missing, whose share rows do not reduce."""
    if decision["reason"] not in (Reason.OBSERVATIONS, Reason.CARRIERS, Reason.RARE_FAULTS):
        return None
    by_rows = found.moves
    by_rows_alone = student_interval(evidence.delta, by_rows.standard_error, by_rows.freedom)
    # More rows do not narrow the seeds' part of the interval: it counts like a certified bound.
    seeds = decision["interval"].high - by_rows_alone.high
    evidence = evidence._replace(
        standard_error=by_rows.standard_error, freedom=by_rows.freedom, bound=max(0.0, seeds)
    )
    return rows_needed(single.rows, evidence, decision, single.margin, found.sample.alike)


def _noise(
    old: Runs,
    new: Runs,
    rows_error: float,
    parts: Sequence[Tuple[float, float]],
    freedom: float,
    margin: float,
) -> TrainingNoise:
    """The figures to report of the runs.

    Args:
        rows_error: standard error of the difference from the choice of the rows.
        parts: of the variance of the difference (parity.stats.seeds); freedom: of their sum.
    """
    *by_seeds, by_rows = parts
    return TrainingNoise(
        baseline_aucs=tuple(old.aucs.tolist()),
        candidate_aucs=tuple(new.aucs.tolist()),
        seed_sd=(old.seed_sd, new.seed_sd),
        standard_error_rows=rows_error,
        standard_error_seeds=math.sqrt(sum(variance for variance, _ in by_seeds)),
        degrees_of_freedom=freedom,
        control=control_of(old.aucs.tolist(), margin),
        power=power(parts, margin),
        runs_to_settle=runs_to_settle(_variances(old, new), by_rows, margin),
    )


def _check_stated(seed_sd: float, fewer: int) -> None:
    """Refuses a spread of runs that is none, or that the runs show themselves."""
    if not 0 <= seed_sd < 1:
        raise UsageError(
            f"the runs' standard deviation is {seed_sd}; one of AUCs is expected, such as 0.0003"
        )
    if fewer > 1:
        raise UsageError(
            "the runs' standard deviation is stated, but both sides have several runs, which show "
            "it themselves; leave it out"
        )


def _ranked(
    runs: Sequence[Any], name: str, rows: Rows, stated: Optional[float]
) -> Tuple[Runs, np.ndarray]:
    """The runs of one side, and their mean placements, float64 (n,)."""
    aucs: List[float] = []
    tied_pairs = 0
    total = np.zeros(len(rows.positive))
    for index, run in enumerate(runs):
        column = Column(f"{name}[{index}]")
        scores = rows.aligned(check_scores(run, column), column)
        check_not_label(scores, rows.positive, column)
        ranking = rank(scores, rows.positive, rows.weights)
        aucs.append(ranking.area())
        total += ranking.placements()
        tied_pairs = max(tied_pairs, ranking.tied_pairs())
    copied = any(itertools.starmap(np.array_equal, itertools.combinations(runs, 2)))
    return Runs(np.array(aucs), tied_pairs, copied, stated), total / len(runs)


def _shared(baselines: Sequence[Any], candidates: Sequence[Any]) -> bool:
    """Whether a run is on both sides."""
    return any(np.array_equal(old, new) for old in baselines for new in candidates)


def _least_ranked(runs: Runs, first: Side) -> Side:
    """The first run's figures, with the AUC nearest 0.5 and the most ties of any run."""
    nearest = min(runs.aucs.tolist(), key=lambda auc: abs(auc - 0.5))
    return dataclasses.replace(first, auc=nearest, tied_pairs=runs.tied_pairs)


def _mean_of(runs: Runs, first: Side, by_seeds: Tuple[float, float]) -> Side:
    """The first run's figures, with the mean AUC; its error covers the seeds' variance too."""
    by_rows = first.standard_error**2, max(1.0, first.freedom)
    error, freedom = satterthwaite([by_rows, by_seeds])
    auc = float(runs.aucs.mean())
    return dataclasses.replace(first, auc=auc, standard_error=error, freedom=freedom)


def _variances(old: Runs, new: Runs) -> List[float]:
    """The variances between the runs of either side; the other side's where a side has one run."""
    known = [side.variance for side in (old, new) if side.variance is not None]
    return [known[0] if side.variance is None else side.variance for side in (old, new)]


def _shares(old: Runs, new: Runs) -> List[Tuple[float, float]]:
    """Each side's seed variance in the difference, and its degrees of freedom."""
    most = max(old.runs, new.runs)

    def freedom(side: Runs) -> float:
        if side.runs == 1:
            return most - 1 if side.lone else _STATED
        return side.runs - 1

    variances = zip(_variances(old, new), (old, new))
    return [(variance / side.runs, freedom(side)) for variance, side in variances]


def _by_seeds(old: Runs, new: Runs) -> List[Tuple[float, float]]:
    """The seeds' variance in the difference, with its degrees of freedom: a part for
    each side, or one for both where one variance stands for both."""
    shares = _shares(old, new)
    if old.lone or new.lone:
        return [(shares[0][0] + shares[1][0], shares[0][1])]
    return shares


def _notes_on_copies(old: Runs, new: Runs) -> Tuple[str, ...]:
    """A note on each side that has a run twice."""
    return tuple(
        f"Two of the {name}'s runs have the same scores: one run given twice makes the seeds look "
        "more alike than they are."
        for name, side in (("baseline", old), ("candidate", new))
        if side.copied
    )


def _notes_on_lone(old: Runs, new: Runs) -> Tuple[str, ...]:
    """A note on a side that has one run."""
    return tuple(
        f"The {name} has one run: its seeds are assumed to spread as the other's do, which one run "
        "cannot show."
        if side.lone
        else f"The {name} has one run: its seeds' standard deviation, {side.stated:g}, is the one "
        "that was stated."
        for name, side in (("baseline", old), ("candidate", new))
        if side.runs == 1
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
            else f"About {noise.runs_to_settle} runs per side would find equal pipelines "
            "equivalent four times out of five."
        )
    return tuple(notes)
