"""Two models on the same rows: the difference of their AUCs, how sure it is, and what follows.

1. Both models' scores are ranked against the labels; delta = candidate's AUC - baseline's.
2. The rows' placement differences give its standard error (parity.variance): paired, so what both
   models find hard cancels, and by clusters where rows come in clusters.
3. The 90 % interval against the margin gives the verdict (parity.equivalence).

The standard error covers the choice of the rows, not the training: two runs of one pipeline differ
as well, and one run of each cannot show by how much.
"""

from typing import Any, Optional, Tuple

import numpy as np

from parity.agreement import score_difference
from parity.calibration import calibration, loss_difference, losses, reliability
from parity.checks import check_margin
from parity.equivalence import (
    Interval,
    Verdict,
    at_least,
    judge,
    normal_interval,
    observations_to_resolve,
    resolution,
    rows_to_settle,
    unmoved_interval,
)
from parity.grouped import grouped_auc
from parity.ranking import Ranking, rank
from parity.result import Comparison, Side
from parity.rows import Rows, checked_rows
from parity.tf1_auc import thresholded_auc
from parity.unmoved import unmoved
from parity.variance import Spread, spread
from semisync.errors import BadInput

FEW = 40  # the standard error from fewer rows of a class, or clusters, is itself rough


def compare(
    labels: Any,
    baseline: Any,
    candidate: Any,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Args:
        labels: (n,) 0 or 1; at least two rows of each.
        baseline: (n,) finite scores of the model to match, the higher the likelier a 1.
        candidate: (n,) finite scores of the model in question, for the same rows.
        margin: the largest difference in AUC that does not matter, from 1e-9 to below 1.
        clusters: (n,) what rows share that vary together, such as the user; numbers or strings.
        weights: (n,) sample weights >= 0; rows of weight 0 are left out.

    Returns: a Comparison; its `verdict` is EQUIVALENT, NOT_EQUIVALENT or INCONCLUSIVE.

    Raises: BadInput, naming the argument and the first row at fault; UsageError for the margin.
    """
    check_margin(margin)
    return compare_rows(checked_rows(labels, baseline, candidate, clusters, weights), margin)


def compare_rows(rows: Rows, margin: float) -> Comparison:
    """`compare` of checked rows and margin."""
    clusters = _count_clusters(rows)
    observations = rows.rarer if clusters is None else min(rows.rarer, clusters)
    old = _Model(rows.baseline, rows)
    new = _Model(rows.candidate, rows)
    delta = new.auc - old.auc
    moved = new.placements - old.placements
    found = spread(moved, delta, rows.positive, rows.weights, rows.clusters)

    interval, notes = _interval(old, new, moved, found, observations, margin)
    verdict = judge(interval, margin)
    needed = None
    if verdict is Verdict.INCONCLUSIVE:
        needed = rows_to_settle(len(rows.positive), observations, interval, margin)
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
        notes=notes,
    )


class _Model:
    """One model's scores ranked on the common rows."""

    def __init__(self, scores: np.ndarray, rows: Rows) -> None:
        self._scores, self.rows = scores, rows
        self._ranking: Ranking = rank(scores, rows.positive, rows.weights)
        self.auc = self._ranking.area()
        self.placements = self._ranking.placements()
        self.losses = losses(rows.positive, scores)

    def side(self) -> Side:
        """The figures to report."""
        positive, weights, clusters = self.rows.positive, self.rows.weights, self.rows.clusters
        scores = self._scores
        own = spread(self.placements, self.auc, positive, weights, clusters)
        fit = bins = within = old_style = None
        if self.losses is not None:
            bins = reliability(positive, scores, weights)
            fit = calibration(positive, scores, self.losses, weights, bins)
        if clusters is not None:
            within = grouped_auc(positive, scores, clusters, weights).gauc
        if scores.min() >= 0 and scores.max() <= 1:
            old_style = thresholded_auc(positive, scores, weights)
        return Side(
            auc=self.auc,
            standard_error=own.standard_error,
            calibration=fit,
            pr_auc=self._ranking.average_precision(),
            gauc=within,
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
    count = int(np.count_nonzero(np.bincount(rows.clusters)))
    if count == 1:
        raise BadInput("all rows are in one cluster; a standard error needs two clusters or more")
    return count


def _interval(
    old: _Model,
    new: _Model,
    moved: np.ndarray,
    found: Spread,
    observations: int,
    margin: float,
) -> Tuple[Interval, Tuple[str, ...]]:
    """The 90 % interval of the difference, and notes on what it rests on."""
    delta = new.auc - old.auc
    interval = normal_interval(delta, found.standard_error)
    notes = []
    still = unmoved(old.rows, moved, found)
    if still is not None:
        interval = unmoved_interval(delta, observations, still.reach)
        if still.ranks:
            notes.append(
                "The standard error is 0 although the models rank differently; the interval is "
                f"the rule of three's for {observations:,} observations (rows of the rarer class, "
                "or clusters) that all see the same difference."
            )
    interval = at_least(interval, delta, resolution(observations))
    return interval, (*notes, *notes_on_few(observations, margin))


def notes_on_few(observations: int, margin: float) -> Tuple[str, ...]:
    """What so few observations (rows of the rarer class, or clusters) cannot show."""
    notes = []
    if observations < FEW:
        notes.append(
            f"The standard error rests on {observations} observations (rows of the rarer class, "
            f"or clusters) and is itself rough, rather too small; {FEW} or more are advised."
        )
    if resolution(observations) >= margin:
        notes.append(
            f"However alike the models rank them, {observations} observations (rows of the rarer "
            f"class, or clusters) cannot vouch for less than +-{resolution(observations):.2g}; "
            f"this margin takes {observations_to_resolve(margin)} or more."
        )
    return tuple(notes)
