"""A comparison's figures, for a notebook and for the report alike, as matplotlib Figures.

    parity.plot.interval(comparison)        the difference against the margin
    parity.plot.runs(comparison)            each training run's AUC
    parity.plot.days(comparison)            the daily differences
    parity.plot.slices(comparison, name)    the difference within each slice
    parity.plot.roc(comparison)             both ROC curves
    parity.plot.reliability(comparison)     predicted against observed rates
    parity.plot.scores(comparison)          the rows by both scores
    parity.plot.differences(comparison)     the score differences of the rows

1. Nothing is encoded by colour alone: lines differ in dash, marks in shape.
2. The colours are those of PALETTE, which the report turns into its own (parity.plot.svg), so that
   they follow the reader's light or dark screen.
3. matplotlib is imported when the first figure is drawn; it comes with the extra `report`.
"""

from parity.plot.auc_figures import days, interval, runs, slices
from parity.plot.score_figures import differences, reliability, roc, scores
from parity.plot.style import PALETTE

__all__ = [
    "PALETTE",
    "days",
    "differences",
    "interval",
    "reliability",
    "roc",
    "runs",
    "scores",
    "slices",
]
