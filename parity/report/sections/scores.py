"""How near the two scores of a row are to each other."""

from typing import Tuple

from parity import plot
from parity.report.sections.markup import drawing, side_by_side, table
from parity.result import Comparison


def scores_section(found: Comparison) -> str:
    """Quantiles of the differences, KS and Spearman, and the rows by both scores."""
    apart = found.score_difference
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
                    plot.scores(found),
                    "scores",
                    "Two-dimensional histogram of the candidate's score against the baseline's.",
                ),
                drawing(
                    "Candidate's score − baseline's; the outermost bars hold all beyond",
                    plot.differences(found),
                    "differences",
                    f"Histogram; half of the rows differ by less than {apart.p50:.2g}, 99% by less "
                    f"than {apart.p99:.2g}.",
                ),
            ),
        )
    )


def _four(*values: float) -> Tuple[str, ...]:
    return tuple(f"{value:.2g}" for value in values)
