"""Figures of the difference in AUC: as a whole, by training run, by day and by slice."""

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

import numpy as np

from parity.formatting import clipped, minus, signed
from parity.plot.canvas import drawn, few_ticks, margin_band, required
from parity.plot.style import MARKS, PALETTE
from parity.result import Comparison
from parity.stats.equivalence import Verdict
from parity.stats.parts import Part
from parity.stats.trend import series_of
from semisync.common.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PARTS = 30  # slices that one figure can show


def interval(comparison: Comparison) -> "Figure":
    """The interval of the difference against the band of +-margin.

    Args:
        comparison: from `parity.compare`.

    Returns:
        A matplotlib Figure.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parity.plot.interval(comparison).savefig("interval.svg")
    """
    margin, delta = comparison.margin, comparison.delta

    def draw(axes: "Axes") -> None:
        reach = 1.15 * max(1.5 * margin, *map(abs, comparison.interval))
        margin_band(margin, axes.axvspan, axes.axvline)
        axes.plot(comparison.interval, [0, 0], color=PALETTE["ink"], linewidth=3, marker="|", ms=16)
        axes.plot([delta], [0], "o", ms=9, mec=PALETTE["ink"], mfc=PALETTE["paper"], mew=2)
        axes.annotate(
            signed(delta, margin), (delta, 0), (0, 14), textcoords="offset points", ha="center"
        )
        axes.set(xlim=(-reach, reach), ylim=(-1, 1.6), yticks=[])
        ticks = [-margin, 0, margin]
        if reach > 4 * margin:  # the three labels would run into one another
            ticks = [-margin, margin]
        axes.set_xticks(ticks, [minus(f"{tick:+g}") if tick else "0" for tick in ticks])
        if len(ticks) == 2:
            left, right = axes.get_xticklabels()
            left.set(ha="right")
            right.set(ha="left")
        axes.spines["left"].set_visible(False)
        axes.text(0, 1.25, "within the margin", ha="center")
        below: Dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate("← candidate worse", (0, 0), (0, -36), ha="left", **below)
        axes.annotate("candidate better →", (1, 0), (0, -36), ha="right", **below)

    return drawn(draw, 2.0)


def runs(comparison: Comparison) -> "Figure":
    """The AUC of each training run; the band is the margin around the baseline's mean.

    Args:
        comparison: from `parity.compare_runs`.

    Returns:
        A matplotlib Figure.

    Raises:
        UsageError: the comparison has no training runs.

    Examples:
        >>> comparison = parity.compare_runs(labels, [baseline], [candidate, candidate + 1e-4])
        >>> parity.plot.runs(comparison).savefig("runs.svg")
    """
    training = required(comparison.training, "training runs", "parity.compare_runs")

    def draw(axes: "Axes") -> None:
        mean, margin = comparison.baseline.auc, comparison.margin
        axes.axvspan(mean - margin, mean + margin, color=PALETTE["band"], zorder=0)
        for height, name, aucs, mark in (
            (1, "baseline", training.baseline_aucs, "o"),
            (0, "candidate", training.candidate_aucs, "D"),
        ):
            axes.plot(aucs, [height] * len(aucs), mark, color=PALETTE[name], alpha=0.8)
            axes.plot([np.mean(aucs)], [height], "|", ms=24, mew=2, color=PALETTE["ink"])
        axes.set(yticks=[0, 1], yticklabels=["candidate", "baseline"], ylim=(-0.6, 1.6))
        axes.set_xlabel("AUC of each run")
        few_ticks(axes, "x", 4)

    return drawn(draw, 1.9)


def days(comparison: Comparison) -> "Figure":
    """Each day's difference with its interval, the margin's band, and the slope fitted.

    Args:
        comparison: with `days`.

    Returns:
        A matplotlib Figure.

    Raises:
        UsageError: the comparison has no days.

    Examples:
        >>> import dataclasses
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> found = parity.compare_days(labels, baseline, candidate, days)
        >>> comparison = dataclasses.replace(comparison, days=found)
        >>> parity.plot.days(comparison).savefig("days.svg")
    """
    series = required(comparison.days, "days", "parity.compare_days")

    def draw(axes: "Axes") -> None:
        margin_band(comparison.margin, axes.axhspan, axes.axhline)
        at = [i for i, day in enumerate(series.days) if day.interval is not None]
        usable = [series.days[i] for i in at]
        delta = np.array([day.delta for day in usable])
        low, high = np.array([day.interval for day in usable]).T
        if len(at) <= MOST_PARTS:
            axes.vlines(at, low, high, color=PALETTE["baseline"])
            axes.plot(at, delta, "o", color=PALETTE["baseline"], ms=5, label="a day, with interval")
        else:
            axes.fill_between(at, low, high, color=PALETTE["baseline"], alpha=0.25, linewidth=0)
            axes.plot(at, delta, color=PALETTE["baseline"], linewidth=1.5, label="days, intervals")
        if series.slope is not None:
            weight = series_of(series.days).weights
            middle, mean = (np.average(values, weights=weight) for values in (at, delta))
            ends = np.array([at[0], at[-1]])
            line = mean + series.slope * (ends - middle)
            axes.plot(ends, line, color=PALETTE["candidate"], dashes=(6, 3), label="drift")
        shown = np.unique(np.linspace(0, len(series.days) - 1, 4).astype(int)).tolist()
        axes.set_xticks(shown, [clipped(series.days[i].name, 12) for i in shown])
        axes.set_ylabel("difference in AUC")
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderpad=0)
        few_ticks(axes, "y", 5)

    return drawn(draw, 3.2)


def slices(comparison: Comparison, name: Optional[str] = None) -> "Figure":
    """A forest plot of the slices, those that differ most surely first.

    At most MOST_PARTS are drawn, and none that has too few rows for a difference.

    Args:
        comparison: with `slices`.
        name: the column that slices, where there are several; the first one by default.

    Returns:
        A matplotlib Figure.

    Raises:
        UsageError: the comparison has no such slices.

    Examples:
        >>> import dataclasses
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> parts = parity.compare_slices(labels, baseline, candidate, countries)
        >>> comparison = dataclasses.replace(comparison, slices=(("country", parts),))
        >>> parity.plot.slices(comparison, "country").savefig("slices.svg")
    """
    by_name = dict(required(comparison.slices or None, "slices", "parity.compare_slices"))
    name = next(iter(by_name)) if name is None else name
    if name not in by_name:
        raise UsageError(f"there are no slices {name!r}; there are: {', '.join(by_name)}")
    parts = [part for part in by_name[name] if part.interval is not None]
    if not parts:
        raise UsageError(f"no slice of {name!r} has two rows of each class")
    parts = surest_first(parts)[:MOST_PARTS]

    def draw(axes: "Axes") -> None:
        margin_band(comparison.margin, axes.axvspan, axes.axvline)
        for height, part in enumerate(parts):
            if part.delta is None or part.interval is None or part.verdict is None:
                continue  # left out above, as far as a type checker cannot see
            colour = PALETTE["candidate" if part.differs else "baseline"]
            axes.hlines(height, *part.interval, color=colour, linewidth=2)
            mark = MARKS[part.verdict]
            filled = colour if part.verdict is not Verdict.INCONCLUSIVE else PALETTE["paper"]
            axes.plot([part.delta], [height], mark, mec=colour, mfc=filled, ms=8)
        names = [clipped(part.name, 18) for part in parts]
        axes.set(yticks=range(len(parts)), yticklabels=names, ylim=(len(parts) - 0.5, -0.5))
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(parts)), [f"q {part.q:.2g}" for part in parts])
        right.tick_params(length=0)
        right.spines["right"].set_visible(False)
        axes.set_xlabel("difference in AUC")
        few_ticks(axes, "x", 4)

    return drawn(draw, 1.0 + 0.28 * len(parts))


def surest_first(parts: Sequence[Part]) -> List[Part]:
    """The parts by rising p-value; those without one last."""
    return sorted(parts, key=lambda part: 2.0 if part.p is None else part.p)
