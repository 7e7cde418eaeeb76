"""Figures of either model's scores: ranking, calibration, score differences."""

from typing import TYPE_CHECKING, Tuple

import numpy as np

from parity.plot.canvas import drawn, few_ticks, required, sides
from parity.plot.style import GUIDE, LINES, PALETTE
from parity.result import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def roc(comparison: Comparison) -> "Figure":
    """Both models' ROC curves.

    Args:
        comparison: from `parity.compare`.

    Returns:
        A matplotlib Figure.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parity.plot.roc(comparison).savefig("roc.svg")
    """

    def draw(axes: "Axes") -> None:
        axes.plot([0, 1], [0, 1], **GUIDE)
        for name, side in sides(comparison):
            axes.plot(*side.curve, label=name, **LINES[name])
        axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        axes.legend(frameon=False, loc="lower right")

    return drawn(draw, 4.6)


def reliability(comparison: Comparison) -> "Figure":
    """The mean label against the mean score, in bins of equal row count.

    Args:
        comparison: from `parity.compare`.

    Returns:
        A matplotlib Figure.

    Raises:
        UsageError: not all scores lie in (0, 1).

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parity.plot.reliability(comparison).savefig("reliability.svg")
    """
    curves = [
        (name, required(side.reliability, "probabilities", "scores in (0, 1)"))
        for name, side in sides(comparison)
    ]

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import LogLocator, NullLocator

        values = np.concatenate([np.concatenate(bins[:2]) for _, bins in curves])
        rare = values.min() > 0 and values.max() > 20 * values.min()
        ends = [values.min() / 1.3, min(1, values.max() * 1.3)] if rare else [0, values.max()]
        axes.plot(ends, ends, **GUIDE)
        for name, bins in curves:
            axes.plot(bins.scores, bins.labels, label=name, ms=5, marker="o", **LINES[name])
        if rare:
            axes.set(xscale="log", yscale="log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 3)))
                axis.set_major_formatter("{x:.2g}")
                axis.set_minor_locator(NullLocator())
        axes.set(xlabel="mean score of a bin of rows", ylabel="share of positives", aspect="equal")
        axes.legend(frameon=False, loc="upper left")

    return drawn(draw, 4.6)


def scores(comparison: Comparison) -> "Figure":
    """How many rows have which pair of scores; on the line both models agree.

    Args:
        comparison: from `parity.compare`.

    Returns:
        A matplotlib Figure.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parity.plot.scores(comparison).savefig("scores.svg")
    """
    joint = comparison.score_difference.joint

    def draw(axes: "Axes") -> None:
        from matplotlib.colors import LinearSegmentedColormap, LogNorm

        ends = joint.edges[[0, -1]]
        shades = LinearSegmentedColormap.from_list(
            "rows", [(*_rgb(PALETTE["baseline"]), alpha) for alpha in (0.2, 1)]
        )
        axes.imshow(
            np.ma.masked_equal(joint.counts.T, 0),
            cmap=shades,
            norm=LogNorm(1, max(2, joint.counts.max())),
            origin="lower",
            extent=(*ends, *ends),
            interpolation="nearest",
        )
        axes.plot(ends, ends, **GUIDE)
        label = "logit of the {} score" if joint.logits else "{} score"
        axes.set(xlabel=label.format("baseline's"), ylabel=label.format("candidate's"))

    return drawn(draw, 4.6)


def differences(comparison: Comparison) -> "Figure":
    """A histogram of candidate score - baseline score; the outermost bars hold all beyond.

    Args:
        comparison: from `parity.compare`.

    Returns:
        A matplotlib Figure.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parity.plot.differences(comparison).savefig("differences.svg")
    """
    apart = comparison.score_difference

    def draw(axes: "Axes") -> None:
        axes.stairs(apart.counts, apart.edges, fill=True, color=PALETTE["baseline"])
        axes.set(xlim=apart.edges[[0, -1]], ylabel="rows")
        axes.set_xlabel("candidate score − baseline score")
        reach = float(apart.edges[-1])
        axes.set_xticks([-reach, 0, reach], [f"−{reach:.2g}", "0", f"+{reach:.2g}"])
        few_ticks(axes, "y", 4)

    return drawn(draw, 2.8)


def _rgb(colour: str) -> Tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
