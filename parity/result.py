"""What a comparison found: plain figures, the same for a program, a report and a CI."""

from dataclasses import dataclass
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from parity.agreement import ScoreDifference
from parity.calibration import Calibration, MeanDifference, Reliability
from parity.diagnosis.suspect import Suspect
from parity.equivalence import CONFIDENCE, Interval, Verdict
from parity.strata import Days, Part
from parity.worst import WorstRow

SCHEMA = "semisync/parity/1"  # grows with every change that a reader of the JSON could trip over


@dataclass(frozen=True, eq=False)
class Side:
    """One model's own figures."""

    auc: float
    standard_error: float  # of `auc`, by clusters where there are any
    calibration: Optional[Calibration]  # None unless all scores lie strictly inside (0, 1)
    pr_auc: float  # average precision
    gauc: Optional[float]  # None without clusters, or without one that holds both classes
    tf1_compat_auc: Optional[float]  # None unless all scores lie in [0, 1]
    tied_pairs: int  # positive-negative pairs of one score, each half won
    curve: Tuple[np.ndarray, np.ndarray]  # false and true positive rates along the ROC curve
    reliability: Optional[Reliability] = None  # where there is `calibration`

    @property
    def logloss(self) -> Optional[float]:
        """In nats; None unless all scores lie strictly inside (0, 1)."""
        return None if self.calibration is None else self.calibration.logloss

    def to_json(self) -> Dict[str, Any]:
        """The figures, without the curve."""
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


class Control(NamedTuple):
    """The baseline's runs against one another."""

    pairs: int
    mean: float  # of |difference in AUC|
    largest: float
    beyond_margin: int  # pairs that differ by more than the margin


class TrainingNoise(NamedTuple):
    """What the training runs show; None where a side has a single run."""

    baseline_aucs: Tuple[float, ...]
    candidate_aucs: Tuple[float, ...]
    seed_sd: Tuple[Optional[float], ...]  # baseline's, candidate's
    standard_error_rows: float  # of the difference, from the choice of rows alone
    standard_error_seeds: float  # from the seeds alone
    degrees_of_freedom: float
    control: Optional[Control]
    power: float  # chance that equal pipelines pass with as many runs and rows
    runs_to_settle: Optional[int]  # a side; None where only more rows could


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two models on the same rows. Differences are candidate minus baseline, in units of AUC."""

    verdict: Verdict
    delta: float
    standard_error: float  # of `delta`, by clusters where there are any
    interval: Interval  # 90 %, around `delta`
    margin: float
    baseline: Side
    candidate: Side
    rows: int  # with weight above 0
    positives: int
    standard_error_independent: float  # as if the rows did not come in clusters
    clusters: Optional[int]
    design_effect: Optional[float]  # clustered variance / that of independent rows
    weighted: bool
    rows_to_settle: Optional[int]  # for 80 % power if the models are equal; None once settled
    logloss_difference: Optional[MeanDifference]  # None unless both models give probabilities
    score_difference: ScoreDifference
    notes: Tuple[str, ...]  # sentences on what limits the verdict
    training: Optional[TrainingNoise] = None  # with several runs a side
    days: Optional[Days] = None
    slices: Tuple[Tuple[str, Tuple[Part, ...]], ...] = ()  # by the name of what slices
    worst: Tuple[WorstRow, ...] = ()
    bound: Optional[float] = None  # certified, of delta, where scores were counted in histograms
    diagnosis: Tuple[Suspect, ...] = ()  # by falling score; none where the verdict is EQUIVALENT

    def to_json(self) -> Dict[str, Any]:
        """The figures as values of strict JSON, under the versioned key "schema"."""
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.value,
            "delta": self.delta,
            "standard_error": self.standard_error,
            "interval": list(self.interval),
            "confidence": CONFIDENCE,
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
            "diagnosis": _plain(self.diagnosis),
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        """The report, for a notebook; its styles touch nothing else there."""
        from parity.report import report_section, stylesheet  # they build on this module

        return f"<style>{stylesheet()}</style>{report_section(self, heading_level=3)}"


def _plain(value: Any) -> Any:
    """NamedTuples as mappings, intervals and other tuples as lists, the rest as it is."""
    if hasattr(value, "_asdict") and not isinstance(value, Interval):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.value if isinstance(value, Verdict) else value
