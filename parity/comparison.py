"""Two models on the same rows: the difference of their AUCs, how sure it is, and what follows.

1. Both models' scores are ranked against the labels; delta = candidate's AUC - baseline's.
2. The rows' placement differences give its standard error (parity.stats.delong): paired, so what
   both models find hard cancels, and by clusters where rows come in clusters.
3. The 90 % interval against the margin gives the verdict (parity.stats.equivalence).
4. EQUIVALENT also takes rows enough to exclude rare faults, or a record of a verification that
   does (parity.stats.rare_failures).

The standard error covers the choice of the rows, not the training: two runs of one pipeline differ
as well, and one run of each cannot show by how much.
"""

from typing import Any, Optional, Tuple

import numpy as np

from parity import doubts
from parity.inputs.checks import check_margin
from parity.inputs.rows import Rows, checked_rows
from parity.result import Comparison, Side
from parity.stats.agreement import score_difference
from parity.stats.calibration import calibration, loss_difference, losses, reliability
from parity.stats.delong import Spread, check_holding, class_observations, holding, spread
from parity.stats.equivalence import Verdict, observations_to_resolve, resolution
from parity.stats.grouped import within_groups
from parity.stats.paired import gauc_difference, pcoc_difference
from parity.stats.ranking import Ranking, rank
from parity.stats.rare_failures import (
    Sample,
    notes_on_carriers,
    rare_failures,
    reaches,
    rows_needed,
    settle,
)
from parity.stats.sampling import sampled
from parity.stats.tf1_auc import thresholded_auc
from parity.stats.unmoved import Unmoved
from parity.unavailable import why_no_losses
from parity.verified import Record, Verified, read_record
from semisync.common.errors import BadInput

FEW = 40  # the standard error from fewer rows of a class, or clusters, is itself rough


def compare(
    labels: Any,
    baseline: Any,
    candidate: Any,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
    verified: Optional[Record] = None,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Args:
        labels: (n,) 0 or 1; at least two rows of each.
        baseline: (n,) finite scores of the model to match, the higher the likelier a 1.
        candidate: (n,) finite scores of the model in question, for the same rows.
        margin: the largest difference in AUC that does not matter, from 1e-9 to below 1.
        clusters: (n,) what rows share that vary together, such as the user; numbers or strings.
        weights: (n,) sample weights >= 0; rows of weight 0 are left out.
        verified: what `semisync verify --json` printed of the candidate's conversion, as a path or
            a mapping: it stands for the rows that it takes to exclude rare faults.

    Returns: a Comparison; its `verdict` is EQUIVALENT, NOT_EQUIVALENT or INCONCLUSIVE.

    Raises: BadInput, naming the argument and the first row at fault; UsageError for the margin.
    """
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    rows = checked_rows(labels, baseline, candidate, clusters, weights)
    return compare_rows(rows, margin, record)


def compare_rows(rows: Rows, margin: float, verified: Optional[Verified] = None) -> Comparison:
    """`compare` of checked rows, margin and record."""
    clusters = _count_clusters(rows)
    old = _Model(rows.baseline, rows)
    new = _Model(rows.candidate, rows)
    delta = new.auc - old.auc
    moved = new.placements - old.placements
    found = spread(moved, delta, rows.positive, rows.weights, rows.clusters)

    interval, _, still = sampled(rows, moved, delta, found)
    rare = rare_failures(sample_of(rows, old.placements, found), margin)
    verdict = settle(interval, margin, rare, verified)
    needed = None
    if verdict is Verdict.INCONCLUSIVE:
        needed = rows_needed(len(rows.positive), interval, margin, rare, verified)
    paired = None
    if old.losses is not None and new.losses is not None:
        paired = loss_difference(old.losses, new.losses, rows.weights, rows.clusters)
    return Comparison(
        verdict=verdict,
        delta=delta,
        standard_error=found.standard_error,
        interval=interval,
        margin=float(margin),
        baseline=old.side(),
        candidate=new.side(),
        rows=len(rows.positive),
        positives=rows.positives,
        standard_error_independent=found.independent,
        clusters=clusters,
        design_effect=found.design_effect,
        weighted=rows.weights is not None,
        rows_to_settle=needed,
        logloss_difference=paired,
        score_difference=score_difference(rows.baseline, rows.candidate),
        pcoc_difference=pcoc_difference(rows),
        gauc_difference=gauc_difference(old.within, new.within),
        warnings=doubts.of_scores(rows.baseline, rows.candidate),
        notes=(
            *_notes_on_unmoved(still, found),
            *notes_on_few(found.observations, margin),
            *notes_on_carriers(rare, interval, margin),
        ),
        unavailable=why_no_losses(rows.baseline, rows.candidate),
        rare_failures=rare,
        verified=verified,
    )


def sample_of(rows: Rows, placements: np.ndarray, found: Spread) -> Sample:
    """What rare failures are judged by.

    Args:
        placements: float64 (n,), the baseline's.
        found: the spread of the difference.
    """
    return Sample(
        len(rows.positive),
        class_observations(rows.positive, rows.weights, rows.clusters),
        reaches(rows.positive, placements),
        found.carriers,
        found.step,
    )


class _Model:
    """One model's scores ranked on the common rows."""

    def __init__(self, scores: np.ndarray, rows: Rows) -> None:
        self._scores, self.rows = scores, rows
        self._ranking: Ranking = rank(scores, rows.positive, rows.weights)
        self.auc = self._ranking.area()
        self.placements = self._ranking.placements()
        self.losses = losses(rows.positive, scores)
        self.within = None
        if rows.clusters is not None:
            self.within = within_groups(rows.positive, scores, rows.clusters, rows.weights)

    def side(self) -> Side:
        """The figures to report."""
        positive, weights, clusters = self.rows.positive, self.rows.weights, self.rows.clusters
        scores = self._scores
        own = spread(self.placements, self.auc, positive, weights, clusters)
        fit = bins = old_style = None
        if self.losses is not None:
            bins = reliability(positive, scores, weights)
            fit = calibration(positive, scores, self.losses, weights, bins)
        if scores.min() >= 0 and scores.max() <= 1:
            old_style = thresholded_auc(positive, scores, weights)
        return Side(
            auc=self.auc,
            standard_error=own.standard_error,
            calibration=fit,
            pr_auc=self._ranking.average_precision(),
            gauc=None if self.within is None else self.within.gauc,
            tf1_compat_auc=old_style,
            tied_pairs=self._ranking.tied_pairs(),
            curve=self._ranking.curve(),
            reliability=bins,
        )


def _count_clusters(rows: Rows) -> Optional[int]:
    """How many clusters there are, if any; refuses rows too few for a standard error."""
    if rows.rarer < 2:
        raise BadInput(
            "one class has a single row with weight; a standard error needs two rows of each class"
        )
    if rows.clusters is None:
        return None
    held = holding(*(np.bincount(rows.clusters[c]) for c in (rows.positive, ~rows.positive)))
    return check_holding(held).either


def _notes_on_unmoved(still: Optional[Unmoved], found: Spread) -> Tuple[str, ...]:
    """Of a standard error of 0 that is none of equal ranks."""
    if still is None or not still.ranks:
        return ()
    return (
        "The standard error is 0 although the models rank differently; the interval is the rule of "
        f"three's for {_count(found.observations)} that all see the same difference.",
    )


def notes_on_few(observations: float, margin: float) -> Tuple[str, ...]:
    """What so few observations (parity.stats.delong) cannot show."""
    notes = []
    if observations < FEW:
        notes.append(
            f"The standard error rests on {_count(observations)} and is itself rough; {FEW} or "
            "more are advised."
        )
    if resolution(observations) >= margin:
        notes.append(
            f"However alike the models rank them, {_count(observations)} cannot vouch for less "
            f"than +-{resolution(observations):.2g}; this margin takes "
            f"{observations_to_resolve(margin):,} or more."
        )
    return tuple(notes)


def _count(observations: float) -> str:
    return (
        f"{observations:,.0f} observations (rows of the rarer class, or clusters that hold it, as "
        "many as count alike)"
    )
