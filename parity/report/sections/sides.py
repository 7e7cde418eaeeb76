"""The figures of either model, side by side."""

from typing import Dict, List, Optional, Tuple

from parity import plot
from parity.report.sections.markup import drawing, paragraphs, side_by_side, table
from parity.report.words import plain, signed
from parity.result import Comparison, Side
from parity.stats.calibration import Calibration

_WHAT = (
    ("AUC", "a positive row is scored above a negative one; ties count half"),
    ("GAUC", "AUC within each group, weighted by its rows"),
    ("PR-AUC", "area under precision and recall, as average precision"),
    ("log loss", "mean of -ln(the probability given to what happened); lower is better"),
    ("NE", "log loss over that of always predicting the mean; below 1 is of use"),
    ("PCOC", "predicted positives over positives; 1 if calibrated as a whole"),
    ("ECE", "mean gap between scores and labels in bins of equal row count"),
    (
        "tf1_compat_auc",
        "what tf.metrics.auc would print: to reconcile an old dashboard, never to compare models",
    ),
)


def figures_of(found: Comparison) -> List[Tuple[str, Optional[float], Optional[float]]]:
    """(name, baseline's, candidate's); None where a model has none."""
    old, new = _by_name(found.baseline), _by_name(found.candidate)
    return [(name, old[name], new[name]) for name in old]


def sides_section(found: Comparison) -> str:
    """A table of both sides and the differences, what its names mean, and the ROC curves."""
    shown = [row for row in figures_of(found) if row[1] is not None or row[2] is not None]
    rows = [(name, *cells(old, new, found.margin)) for name, old, new in shown]
    sides = found.baseline, found.candidate
    for name, values in (
        ("standard error of the AUC", [f"{side.standard_error:.2g}" for side in sides]),
        ("tied pairs, each half won", [f"{side.tied_pairs:,}" for side in sides]),
    ):
        rows.append((name, values[0], values[1], ""))
    names = {name for name, _, _ in shown}
    meaning = [(name, text) for name, text in _WHAT if name in names]
    blocks = [table(rows, ("", "baseline", "candidate", "difference"))]
    if found.baseline.calibration is None or found.candidate.calibration is None:
        blocks.append(
            paragraphs(
                "Log loss, NE, PCOC and ECE need probabilities: scores strictly between 0 and 1."
            )
        )
    if found.training is not None:
        blocks.append(paragraphs("The AUC is the mean over runs; the others are the first run's."))
    blocks.append(
        side_by_side(
            drawing(
                "ROC curves",
                plot.roc(found),
                "roc",
                "True positive rate against false positive rate, one curve a model.",
            ),
            '<div class="meaning">' + table(meaning) + "</div>",
        )
    )
    return "\n".join(blocks)


def cells(old: Optional[float], new: Optional[float], margin: float) -> Tuple[str, str, str]:
    """Both values and candidate - baseline, as text; a dash for none."""
    change = "" if old is None or new is None else signed(new - old, margin)
    before, after = ("–" if value is None else plain(value, margin) for value in (old, new))
    return before, after, change


def _by_name(side: Side) -> Dict[str, Optional[float]]:
    fit = side.calibration
    none: Tuple[Optional[float], ...] = (None,) * len(Calibration._fields)
    logloss, ne, pcoc, ece = none if fit is None else fit
    return {
        "AUC": side.auc,
        "GAUC": side.gauc,
        "PR-AUC": side.pr_auc,
        "log loss": logloss,
        "NE": ne,
        "PCOC": pcoc,
        "ECE": ece,
        "tf1_compat_auc": side.tf1_compat_auc,
    }
