"""Two models on the same rows: the difference of their AUCs, its error, and the verdict.

1. Both models' scores are ranked against the labels; delta = candidate's AUC - baseline's.
2. The rows' placement differences give its standard error (parity.stats.delong): paired, so what
   both models find hard cancels, and by clusters where rows come in clusters.
3. The 90 % interval against the margin gives the verdict (parity.stats.equivalence).
4. EQUIVALENT also takes rows enough to exclude rare faults, or a record of a verification that
   does (parity.stats.rare_failures).

The standard error covers the choice of the rows, not the training: two runs of one pipeline differ
as well, and one run of each cannot show by how much.
"""

from typing import Any, Dict, Iterable, Optional, Sequence

import numpy as np

from parity import doubts
from parity.inputs.checks import check_margin
from parity.inputs.rows import Rows, checked_rows
from parity.notes import Extent, notes_on_few, notes_on_unmoved, why_no_losses
from parity.result import Comparison, Side
from parity.stats.calibration import (
    calibration,
    loss_difference,
    losses,
    pcoc_difference,
    reliability,
)
from parity.stats.clusters import check_holding, holding
from parity.stats.delong import Spread, class_observations, evidence_of, spread
from parity.stats.equivalence import Evidence, Reason, decide
from parity.stats.gauc import gauc_difference, within_groups
from parity.stats.rare_failures import (
    RareFailures,
    Sample,
    notes_on_carriers,
    rare_failures,
    reaches,
)
from parity.stats.roc import rank
from parity.stats.rows_needed import Basis, rows_to_settle
from parity.stats.score_difference import score_difference
from parity.stats.tf1_auc import thresholded_auc
from parity.verified import Record, Verified, read_record
from semisync.common.errors import BadInput


def compare(
    labels: Any,
    baseline: Any,
    candidate: Any,
    margin: float = 5e-4,
    clusters: Any = None,
    weights: Any = None,
    verified: Optional[Record] = None,
    logits: Iterable[str] = (),
) -> Comparison:
    """Is the candidate's AUC within `margin` of the baseline's?

    Args:
        labels: (n,) 0 or 1; at least two rows of each.
        baseline: (n,) finite scores of the model to match, the higher the likelier a 1.
        candidate: (n,) finite scores of the model in question, for the same rows.
        margin: the largest difference in AUC that does not matter, from 1e-9 to below 1.
        clusters: (n,) the key of rows that vary together, such as the user; numbers or strings.
        weights: (n,) sample weights >= 0; rows of weight 0 are left out.
        verified: the output of `semisync verify --json` on the candidate's conversion, as a path or
            a mapping: it stands for the rows that it takes to exclude rare faults.
        logits: "baseline", "candidate" or both, whose scores are logits: ranked as they are, with
            the log loss of softplus, and shown as probabilities.

    Returns:
        A Comparison; its `verdict` is EQUIVALENT, NOT_EQUIVALENT or INCONCLUSIVE.

    Raises:
        BadInput: a column is not as above; the message names it and the first row at fault.
        UsageError: the margin is out of range, or `logits` names another side.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate, margin=0.02)
        >>> comparison.verdict
        <Verdict.EQUIVALENT: 'EQUIVALENT'>
    """
    check_margin(margin)
    record = None if verified is None else read_record(verified)
    rows = checked_rows(labels, baseline, candidate, clusters, weights, logits)
    return compare_rows(rows, margin, record)


def compare_rows(rows: Rows, margin: float, verified: Optional[Verified] = None) -> Comparison:
    """`compare` of checked rows, margin and record."""
    clusters = _count_clusters(rows)
    apart, repeated = score_difference(rows), doubts.of_rows(rows)  # before much memory is held
    old, new = _Model(rows, 0), _Model(rows, 1)
    delta = new.auc - old.auc
    moved = new.placements - old.placements
    moves = spread(moved, delta, rows.positive, rows.weights, rows.clusters)
    evidence = evidence_of(rows, moved, delta, moves)
    paired = None
    if old.losses is not None and new.losses is not None:
        paired = loss_difference(old.losses, new.losses, rows.weights, rows.clusters)
    return concluded(
        evidence,
        rare_failures(sample_of(rows, old.placements, moves), margin),
        margin,
        verified,
        baseline=old.side(),
        candidate=new.side(),
        rows=len(rows.positive),
        positives=rows.positives,
        standard_error_independent=moves.independent,
        clusters=clusters,
        design_effect=moves.design_effect,
        weighted=rows.weights is not None,
        logloss_difference=paired,
        score_difference=apart,
        pcoc_difference=pcoc_difference(rows),
        gauc_difference=gauc_difference(old.within, new.within),
        warnings=(*doubts.of_scores(*rows.on_one_scale()), *repeated),
        notes=notes_on_unmoved(evidence),
        unavailable=why_no_losses(
            *(None if given else Extent.of(s) for s, given in zip(rows.scores, rows.logits))
        ),
    )


def concluded(
    evidence: Evidence,
    rare: RareFailures,
    margin: float,
    verified: Optional[Verified],
    *,
    baseline: Side,
    candidate: Side,
    rows: int,
    positives: int,
    notes: Sequence[str],
    warnings: Sequence[str],
    **figures: Any,
) -> Comparison:
    """A Comparison with its verdict and the notes on it, whether of rows or of counts.

    Args:
        evidence: of the difference.
        rare: faults that the rows cannot exclude.
        verified: the record that excludes them, if there is one.
        figures: the fields that do not follow from these.
    """
    pairs = positives * (rows - positives)
    flaw, doubted = doubts.of_ranking({"baseline": baseline, "candidate": candidate}, pairs)
    decision = decision_fields(evidence._replace(flaw=flaw), rare, margin, verified)
    alike = not (figures["weighted"] or figures["clusters"])
    needed = None
    # More rows cure neither rough counts nor a model that does not rank.
    if decision["reason"] not in (None, Reason.COUNTS, flaw):
        needed = rows_needed(rows, evidence, decision, margin, alike)
    return Comparison(
        **decision,
        margin=float(margin),
        baseline=baseline,
        candidate=candidate,
        rows=rows,
        positives=positives,
        warnings=(*warnings, *doubted),
        rows_to_settle=needed,
        notes=(
            *notes,
            *notes_on_few(evidence.observations, margin),
            *notes_on_carriers(rare, decision["reason"]),
        ),
        **figures,
    )


def decision_fields(
    evidence: Evidence, rare: RareFailures, margin: float, verified: Optional[Verified]
) -> Dict[str, Any]:
    """The fields of a Comparison that its verdict rests on; arguments as of `concluded`."""
    floor = rare.floor if verified is None else 0.0  # a record excludes rare faults
    decision = decide(evidence._replace(floor=floor), margin)
    return {
        "verdict": decision.verdict,
        "reason": decision.reason,
        "delta": evidence.delta,
        "standard_error": evidence.standard_error,
        "interval": decision.interval,
        "rare_failures": rare,
        "verified": verified,
    }


def rows_needed(
    rows: int, evidence: Evidence, decision: Dict[str, Any], margin: float, alike: bool
) -> Optional[int]:
    """Rows that settle an INCONCLUSIVE comparison, if a number can be named.

    Args:
        decision: from `decision_fields`.
        alike: parity.stats.rows_needed.Basis.
    """
    rare, verified = decision["rare_failures"], decision["verified"]
    basis = Basis(rows, rare.carriers, rare.reach if verified is None else 0.0, alike)
    needed = rows_to_settle(basis, evidence, decision["reason"], margin)
    if needed is None or decision["reason"] is not Reason.RARE_FAULTS:
        return needed
    return None if rare.rows_to_exclude is None else max(needed, rare.rows_to_exclude)


def sample_of(rows: Rows, placements: np.ndarray, moves: Spread) -> Sample:
    """The inputs to the judgement of rare failures.

    Args:
        placements: float64 (n,), the baseline's.
        moves: the spread of the difference.
    """
    return Sample(
        rows=len(rows.positive),
        observations=class_observations(rows.positive, rows.weights, rows.clusters),
        reaches=reaches(rows.positive, placements),
        carriers=moves.carriers,
        step=moves.step,
        alike=rows.weights is None and rows.clusters is None,
    )


class _Model:
    """One model's scores ranked on the common rows."""

    def __init__(self, rows: Rows, model: int) -> None:
        self.rows, self._model = rows, model
        scores = rows.scores[model]
        self._ranking = rank(scores, rows.positive, rows.weights)
        self.auc = self._ranking.area()
        self.placements = self._ranking.placements()
        self.losses = losses(rows.positive, scores, rows.logits[model])
        self.within = None
        if rows.clusters is not None:
            self.within = within_groups(rows.positive, scores, rows.clusters, rows.weights)

    def side(self) -> Side:
        """The figures to report."""
        positive, weights, clusters = self.rows.positive, self.rows.weights, self.rows.clusters
        scores = self.rows.probabilities(self._model)
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
            freedom=own.freedom,
        )


def check_rarer(rows: int) -> None:
    """Raises BadInput if the rarer class has so few rows that there is no standard error."""
    if rows < 2:
        raise BadInput(
            "one class has a single row with weight; a standard error needs two rows of each class"
        )


def _count_clusters(rows: Rows) -> Optional[int]:
    """How many clusters there are, if any; refuses rows too few for a standard error."""
    check_rarer(rows.rarer)
    if rows.clusters is None:
        return None
    return check_holding(holding(rows.positive, rows.clusters)).either
