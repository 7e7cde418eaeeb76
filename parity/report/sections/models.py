"""Both models' own figures: AUC and the like, calibration, and how near their scores are."""

from typing import Dict, List, Optional, Tuple

from parity import plot
from parity.formatting import plain, signed
from parity.report.markup import drawing, paragraphs, side_by_side, table
from parity.result import Comparison, Side
from parity.stats.calibration import Calibration

_MEANING = (
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


def figures_of(comparison: Comparison) -> List[Tuple[str, Optional[float], Optional[float]]]:
    """(name, baseline's, candidate's), None where a model has none; at least one of them has it."""
    old, new = _by_name(comparison.baseline), _by_name(comparison.candidate)
    return [
        (name, old[name], new[name])
        for name in old
        if old[name] is not None or new[name] is not None
    ]


def sides_section(comparison: Comparison) -> str:
    """A table of both sides and the differences, the meaning of its names, and the ROC curves."""
    shown = figures_of(comparison)
    names = {name for name, _, _ in shown}
    old, new = comparison.baseline, comparison.candidate
    rows = [
        *((name, *cells(before, after, comparison.margin)) for name, before, after in shown),
        (
            "standard error of the AUC",
            f"{old.standard_error:.2g}",
            f"{new.standard_error:.2g}",
            "",
        ),
        ("tied pairs, each counted half", f"{old.tied_pairs:,}", f"{new.tied_pairs:,}", ""),
    ]
    meaning = [(name, text) for name, text in _MEANING if name in names]
    blocks = [table(rows, ("", "baseline", "candidate", "difference"))]
    if old.calibration is None or new.calibration is None:
        blocks.append(
            paragraphs(
                "Log loss, NE, PCOC and ECE need probabilities: scores strictly between 0 and 1."
            )
        )
    if comparison.training is not None:
        blocks.append(paragraphs("The AUC is the mean over runs; the others are the first run's."))
    blocks.append(
        side_by_side(
            drawing(
                "ROC curves",
                plot.roc(comparison),
                "roc",
                "True positive rate against false positive rate, one curve per model.",
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


def calibration_section(comparison: Comparison) -> str:
    """The reliability curves, where both models give probabilities."""
    if comparison.baseline.reliability is None or comparison.candidate.reliability is None:
        return ""
    old, new = comparison.baseline.reliability.ece, comparison.candidate.reliability.ece
    return "\n".join(
        (
            paragraphs(
                "On the dotted line a score is the share of positives that it promises; below it, "
                "the model promises too much. AUC sees the order of the rows alone, so two models "
                "of one AUC may differ here."
            ),
            drawing(
                "Reliability, in bins of equal row count",
                plot.reliability(comparison),
                "reliability",
                "Share of positives against mean score, one curve per model; mean gap "
                f"{old:.2g} for the baseline, {new:.2g} for the candidate.",
            ),
        )
    )


def scores_section(comparison: Comparison) -> str:
    """Quantiles of the differences, KS and Spearman, and the rows by both scores."""
    apart = comparison.score_difference
    rows = [("|score difference|", *_four(apart.p50, apart.p90, apart.p99, apart.max))]
    if apart.logit is not None:
        rows.append(("|logit difference|", *_four(*apart.logit)))
    whole = [("KS: largest distance of the scores' distributions", f"{apart.ks:.3g}")]
    if apart.spearman is not None:
        whole.append(("Spearman: correlation of the ranks", f"{apart.spearman:.6f}"))
    return "\n".join(
        (
            table(rows, ("over rows", "median", "90%", "99%", "largest")),
            table(whole),
            side_by_side(
                drawing(
                    "Rows by both scores, the fuller the colour the more; on the line they agree",
                    plot.scores(comparison),
                    "scores",
                    "Two-dimensional histogram of the candidate's score against the baseline's.",
                ),
                drawing(
                    "Candidate's score − baseline's; the outermost bars hold all beyond",
                    plot.differences(comparison),
                    "differences",
                    f"Histogram; half of the rows differ by less than {apart.p50:.2g}, 99% by less "
                    f"than {apart.p99:.2g}.",
                ),
            ),
        )
    )


def _four(*values: float) -> Tuple[str, ...]:
    return tuple(f"{value:.2g}" for value in values)
