"""The result of a comparison: plain figures, the same for a program, a report and a CI.

`parity.compare` fills in a Comparison; `parity.require` adds its gates, `parity.diagnose` its
suspects. This module stands below all of them and holds no more than their records.
"""

import enum
import math
from dataclasses import dataclass, field
from typing import Any, Callable, ClassVar, Dict, Iterable, NamedTuple, Optional, Tuple

import numpy as np

from parity.stats.calibration import Calibration, MeanDifference, Reliability
from parity.stats.equivalence import Reason, Verdict, p_of_difference, p_of_equivalence
from parity.stats.intervals import Interval, confidence
from parity.stats.rare_failures import RareFailures
from parity.stats.score_difference import ScoreDifference
from parity.stats.seeds import Control
from parity.stats.strata import Days, Part
from parity.stats.worst_rows import WorstRow
from parity.verified import Verified

SCHEMA = "semisync/parity/1"  # grows with every change that a reader of the JSON could trip over

# The evidence of a suspect.
ROWS = "rows"  # the rows themselves show it: undoing it makes the scores agree
SETTINGS = "settings"  # the models are known to differ in it; that it matters is an estimate
SYMPTOM = "symptom"  # a pattern in the rows that several causes have
CHANCE = "chance"  # no cause at all: the seed


@dataclass(frozen=True, eq=False, repr=False)
class Side:
    """One model's own figures.

    Attributes:
        auc: exact, ties counted half.
        standard_error: of `auc`, by clusters where there are any.
        calibration: log loss, NE, PCOC and ECE; None unless all scores lie strictly inside (0, 1).
        pr_auc: average precision.
        gauc: None without clusters, or without one that holds both classes.
        tf1_compat_auc: None unless all scores lie in [0, 1].
        tied_pairs: positive-negative pairs of one score, each half won.
        curve: false and true positive rates along the ROC curve, two float arrays.
        reliability: predicted against observed rates, where there is `calibration`.
        freedom: degrees of freedom of `standard_error`.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> round(comparison.baseline.auc, 2), comparison.baseline.calibration is None
        (0.74, False)
    """

    auc: float
    standard_error: float
    calibration: Optional[Calibration]
    pr_auc: float
    gauc: Optional[float]
    tf1_compat_auc: Optional[float]
    tied_pairs: int
    curve: Tuple[np.ndarray, np.ndarray]
    reliability: Optional[Reliability] = None
    freedom: float = math.inf

    @property
    def logloss(self) -> Optional[float]:
        """The log loss, in nats; None unless all scores lie strictly inside (0, 1)."""
        return None if self.calibration is None else self.calibration.logloss

    def __repr__(self) -> str:
        return f"Side(auc={self.auc:.6f})"

    def to_json(self) -> Dict[str, Any]:
        """The figures, without the curve.

        Returns:
            A dict of JSON's types.
        """
        fit = dict.fromkeys(Calibration._fields)
        return {
            "auc": self.auc,
            "standard_error": self.standard_error,
            **(fit if self.calibration is None else self.calibration._asdict()),
            "pr_auc": self.pr_auc,
            "gauc": self.gauc,
            "tf1_compat_auc": self.tf1_compat_auc,
            "tied_pairs": self.tied_pairs,
            "reliability": None if self.reliability is None else self.reliability.to_json(),
        }


class TrainingNoise(NamedTuple):
    """The evidence of the training runs; None where a side has a single run."""

    baseline_aucs: Tuple[float, ...]
    candidate_aucs: Tuple[float, ...]
    seed_sd: Tuple[Optional[float], ...]  # baseline's, candidate's
    standard_error_rows: float  # of the difference, from the choice of rows alone
    standard_error_seeds: float  # from the seeds alone
    degrees_of_freedom: float
    control: Optional[Control]
    power: float  # chance that equal pipelines pass with as many runs and rows
    runs_to_settle: Optional[int]  # per side; None where only more rows could


class Gate(NamedTuple):
    """One requirement beside AUC, and its outcome."""

    name: str  # a key of `parity.gates.METRICS`, "auc", "days", or "slices " and the column
    margin: Optional[float]  # None of `least`
    verdict: Verdict
    delta: Optional[float] = None  # of a metric, candidate - baseline
    interval: Optional[Interval] = None  # None where there is none, and nothing is decided
    failed: Tuple[str, ...] = ()  # slices or days that are not equivalent, models below `least`
    undecided: Tuple[str, ...] = ()  # those that are inconclusive, or have too few rows
    least: Optional[float] = None  # the minimum of either model's AUC
    reason: Optional[Reason] = None  # why a metric with an interval is INCONCLUSIVE


class Suspect(NamedTuple):
    """One possible cause of the difference, and how much of it the cause would explain.

    Its score is its own until `parity.diagnosis.diagnose` weighs it against the others.

    Attributes:
        name: of the cause.
        score: the share of the difference that it would explain, from 0 to 1.
        evidence: sentences.
        remedy: one sentence.
        basis: ROWS, SETTINGS, SYMPTOM or CHANCE of `parity.result`.

    Examples:
        >>> shuffled = np.roll(candidate, 1)
        >>> comparison = parity.compare(labels, baseline, shuffled)
        >>> suspects = parity.diagnose(comparison, labels, baseline, shuffled).diagnosis
        >>> suspects[0].basis
        'rows'
    """

    name: str
    score: float
    evidence: Tuple[str, ...]
    remedy: str
    basis: str


def joint(verdicts: Iterable[Verdict]) -> Verdict:
    """All verdicts at once: one that fails decides, then one that is open."""
    given = set(verdicts)
    for verdict in (Verdict.NOT_EQUIVALENT, Verdict.INCONCLUSIVE):
        if verdict in given:
            return verdict
    return Verdict.EQUIVALENT


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Two models on the same rows. Differences are candidate minus baseline, in units of AUC.

    Attributes:
        verdict: on AUC alone; `decision` takes the gates in.
        delta: the difference of the AUCs.
        standard_error: of `delta`, by clusters where there are any.
        interval: at `confidence`, around `delta`.
        margin: the largest difference that does not matter.
        baseline: its own figures.
        candidate: its own figures.
        rows: with weight above 0.
        positives: rows of label 1.
        standard_error_independent: as if the rows did not come in clusters.
        clusters: how many there are; None without them.
        design_effect: clustered variance / that of independent rows; None without clusters.
        weighted: whether the rows have weights.
        rows_to_settle: with 80 % power; None once settled, or if none can be named.
        logloss_difference: None unless both models give probabilities.
        score_difference: the distribution of a row's score differences.
        notes: sentences on the verdict's limits.
        training: the evidence of the training runs, with several per side.
        days: the result of `parity.compare_days`, of the command's --day.
        slices: by the name of the column, the result of `parity.compare_slices`.
        worst: the result of `parity.worst_rows`.
        bound: certified, of `delta`, where scores were counted in histograms.
        rare_failures: the faults that the rows cannot exclude.
        verified: the record that excludes it, where one was given.
        diagnosis: suspects, the likeliest first; none where it is EQUIVALENT.
        diagnosed: whether suspects were looked for.
        pcoc_difference: as that of log loss.
        gauc_difference: by clusters; None without them.
        warnings: sentences on the figures' blind spots (`parity.doubts`).
        unavailable: which figures are missing, and why (`parity.notes`).
        gates: the requirements beside AUC.
        reason: why `verdict` is INCONCLUSIVE; None where it is not.
        confidence: of all intervals, such as 0.9.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate, margin=0.02)
        >>> comparison.verdict, comparison.rows
        (<Verdict.EQUIVALENT: 'EQUIVALENT'>, 4000)
        >>> low, high = comparison.interval
        >>> -0.02 < low < comparison.delta < high < 0.02
        True
    """

    verdict: Verdict
    delta: float
    standard_error: float
    interval: Interval
    margin: float
    baseline: Side
    candidate: Side
    rows: int
    positives: int
    standard_error_independent: float
    clusters: Optional[int]
    design_effect: Optional[float]
    weighted: bool
    rows_to_settle: Optional[int]
    logloss_difference: Optional[MeanDifference]
    score_difference: ScoreDifference
    notes: Tuple[str, ...]
    training: Optional[TrainingNoise] = None
    days: Optional[Days] = None
    slices: Tuple[Tuple[str, Tuple[Part, ...]], ...] = ()
    worst: Tuple[WorstRow, ...] = ()
    bound: Optional[float] = None
    rare_failures: Optional[RareFailures] = None
    verified: Optional[Verified] = None
    diagnosis: Tuple[Suspect, ...] = ()
    diagnosed: bool = False
    pcoc_difference: Optional[MeanDifference] = None
    gauc_difference: Optional[MeanDifference] = None
    warnings: Tuple[str, ...] = ()
    unavailable: Tuple[str, ...] = ()
    gates: Tuple[Gate, ...] = ()
    reason: Optional[Reason] = None
    confidence: float = field(default_factory=confidence)

    # The notebook's view. `parity/__init__.py` sets it, as the report stands above this module.
    _repr_html_: ClassVar[Callable[["Comparison"], str]]

    @property
    def decision(self) -> Verdict:
        """The verdict on AUC and every gate together, which the exit code states."""
        return joint([self.verdict, *(gate.verdict for gate in self.gates)])

    @property
    def p_difference(self) -> float:
        """The two-sided p-value of "the AUCs do not differ"."""
        return p_of_difference(self.delta, self.interval, self.confidence)

    @property
    def p_equivalence(self) -> float:
        """The p-value of "the AUCs differ by the margin or more", the larger of both sides'."""
        return p_of_equivalence(self.delta, self.interval, self.margin, self.confidence)

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Comparison({self.decision.value}, delta={self.delta:+.3g}, "
            f"interval=({low:+.3g}, {high:+.3g}), margin={self.margin:g}, rows={self.rows})"
        )

    def to_json(self) -> Dict[str, Any]:
        """The figures as values of strict JSON, under the versioned key "schema".

        Returns:
            A dict.
        """
        return {
            "schema": SCHEMA,
            "decision": self.decision.value,
            "verdict": self.verdict.value,
            "reason": None if self.reason is None else self.reason.value,
            "delta": self.delta,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "confidence": self.confidence,
            "margin": self.margin,
            "baseline": self.baseline.to_json(),
            "candidate": self.candidate.to_json(),
            "rows": self.rows,
            "positives": self.positives,
            "standard_error_independent": self.standard_error_independent,
            "clusters": self.clusters,
            "design_effect": self.design_effect,
            "weighted": self.weighted,
            "rows_to_settle": self.rows_to_settle,
            "logloss_difference": _plain(self.logloss_difference),
            "score_difference": {
                **{
                    name: getattr(self.score_difference, name)
                    for name in ("p50", "p90", "p99", "max", "ks", "spearman")
                },
                "logit": _plain(self.score_difference.logit),
            },
            "training": _plain(self.training),
            "days": _plain(self.days),
            "slices": {name: _plain(parts) for name, parts in self.slices},
            "worst_rows": _plain(self.worst),
            "bound": self.bound,
            "rare_failures": _plain(self.rare_failures),
            "verified": _plain(self.verified),
            "diagnosis": _plain(self.diagnosis),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "unavailable": list(self.unavailable),
            "gates": _plain(self.gates),
            "p_difference": self.p_difference,
            "p_equivalence": self.p_equivalence,
            "pcoc_difference": _plain(self.pcoc_difference),
            "gauc_difference": _plain(self.gauc_difference),
        }


def _plain(value: Any) -> Any:
    """NamedTuples as mappings, intervals and other tuples as lists, the rest as it is."""
    if hasattr(value, "_asdict") and not isinstance(value, Interval):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, enum.Enum) else value
