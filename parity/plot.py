"""A comparison's figures, for a notebook and for the report alike, as matplotlib Figures.

    parity.plot.interval(comparison)        the difference against the margin
    parity.plot.runs(comparison)            each training run's AUC
    parity.plot.roc(comparison)             both ROC curves
    parity.plot.days(comparison)            the daily differences
    parity.plot.slices(comparison, name)    the difference within each slice
    parity.plot.reliability(comparison)     what is predicted against what happens
    parity.plot.scores(comparison)          the rows by both scores
    parity.plot.differences(comparison)     how far the scores of a row are apart

1. Nothing is told by colour alone: lines differ in dash, marks in shape.
2. The colours are those of PALETTE, which the report turns into its own (parity.report.svg), so
   that they follow the reader's light or dark screen.
3. matplotlib is imported when the first figure is drawn; it comes with the extra `report`.
"""

from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, TypeVar

import numpy as np

from parity.report.words import clipped, signed
from parity.result import Comparison
from parity.stats.equivalence import Verdict
from parity.stats.parts import Part
from parity.stats.trend import series_of
from semisync.common.errors import MissingExtra, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PALETTE = {
    "paper": "#ffffff",
    "ink": "#1d2330",
    "muted": "#5b6472",
    "baseline": "#2f6db3",
    "candidate": "#b3470b",
    "band": "#d8ecdf",
    "edge": "#11623a",
}
MOST_PARTS = 30  # slices that one figure can show
_WIDTH = 5.2  # inches: 374 points, so that letters keep their size on a phone
_STYLE: Dict[Any, Any] = {
    "font.size": 12,
    "text.parse_math": False,  # a name may hold a dollar sign
    "text.color": PALETTE["ink"],
    "axes.labelcolor": PALETTE["ink"],
    "axes.edgecolor": PALETTE["muted"],
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": PALETTE["paper"],
    "xtick.color": PALETTE["ink"],
    "ytick.color": PALETTE["ink"],
}
_MARKS = {Verdict.EQUIVALENT: "o", Verdict.NOT_EQUIVALENT: "X", Verdict.INCONCLUSIVE: "D"}


def interval(found: Comparison) -> "Figure":
    """The 90 % interval of the difference against the band of +-margin."""

    def draw(axes: "Axes") -> None:
        reach = 1.15 * max(1.5 * found.margin, *map(abs, found.interval))
        _band(axes, found.margin, axes.axvspan, axes.axvline)
        axes.plot(found.interval, [0, 0], color=PALETTE["ink"], linewidth=3, marker="|", ms=16)
        axes.plot([found.delta], [0], "o", ms=9, mec=PALETTE["ink"], mfc=PALETTE["paper"], mew=2)
        _label(axes, (found.delta, 0), signed(found.delta, found.margin), (0, 14))
        axes.set(xlim=(-reach, reach), ylim=(-1, 1.6), yticks=[])
        ticks = [-found.margin, 0, found.margin]
        if reach > 4 * found.margin:  # else the three labels would run into one another
            ticks = [-found.margin, found.margin]
        axes.set_xticks(ticks, [f"{tick:+g}".replace("-", "−") if tick else "0" for tick in ticks])
        if len(ticks) == 2:
            left, right = axes.get_xticklabels()
            left.set(ha="right")
            right.set(ha="left")
        axes.spines["left"].set_visible(False)
        axes.text(0, 1.25, "equivalent inside the band", ha="center")
        below: Dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axes.annotate("← candidate worse", (0, 0), (0, -36), ha="left", **below)
        axes.annotate("candidate better →", (1, 0), (0, -36), ha="right", **below)

    return _drawn(draw, 2.0)


def runs(found: Comparison) -> "Figure":
    """The AUC of each training run; the band is the margin around the baseline's mean."""
    training = _there(found.training, "training runs", "parity.compare_runs")

    def draw(axes: "Axes") -> None:
        mean = found.baseline.auc
        axes.axvspan(mean - found.margin, mean + found.margin, color=PALETTE["band"], zorder=0)
        for height, name, aucs, mark in (
            (1, "baseline", training.baseline_aucs, "o"),
            (0, "candidate", training.candidate_aucs, "D"),
        ):
            axes.plot(aucs, [height] * len(aucs), mark, color=PALETTE[name], alpha=0.8)
            axes.plot([np.mean(aucs)], [height], "|", ms=24, mew=2, color=PALETTE["ink"])
        axes.set(yticks=[0, 1], yticklabels=["candidate", "baseline"], ylim=(-0.6, 1.6))
        axes.set_xlabel("AUC of each run")
        _few_ticks(axes, "x", 4)

    return _drawn(draw, 1.9)


def roc(found: Comparison) -> "Figure":
    """Both models' ROC curves."""

    def draw(axes: "Axes") -> None:
        axes.plot([0, 1], [0, 1], color=PALETTE["muted"], linewidth=1, dashes=(2, 3))
        for name, side in _sides(found):
            axes.plot(*side.curve, label=name, **_LINES[name])
        axes.set(aspect="equal", xlim=(0, 1), ylim=(0, 1))
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        axes.legend(frameon=False, loc="lower right")

    return _drawn(draw, 4.6)


def days(found: Comparison) -> "Figure":
    """Each day's difference with its 90 % interval, the margin's band, and the slope fitted."""
    series = _there(found.days, "days", "parity.compare_days")

    def draw(axes: "Axes") -> None:
        _band(axes, found.margin, axes.axhspan, axes.axhline)
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
        _few_ticks(axes, "y", 5)

    return _drawn(draw, 3.2)


def slices(found: Comparison, name: Optional[str] = None) -> "Figure":
    """A forest plot of the slices, those that differ most surely first.

    Args:
        name: of what slices, where there are several; the first one without it.

    At most MOST_PARTS are drawn, and none that has too few rows for a difference.
    """
    by_name = dict(_there(found.slices or None, "slices", "parity.compare_slices"))
    name = next(iter(by_name)) if name is None else name
    if name not in by_name:
        raise UsageError(f"there are no slices {name!r}; there are: {', '.join(by_name)}")
    parts = [part for part in by_name[name] if part.interval is not None]
    if not parts:
        raise UsageError(f"no slice of {name!r} has two rows of each class")
    parts = surest_first(parts)[:MOST_PARTS]

    def draw(axes: "Axes") -> None:
        _band(axes, found.margin, axes.axvspan, axes.axvline)
        for height, part in enumerate(parts):
            if part.delta is None or part.interval is None or part.verdict is None:
                continue  # left out above, as far as a type checker cannot see
            colour = PALETTE["candidate" if part.differs else "baseline"]
            axes.hlines(height, *part.interval, color=colour, linewidth=2)
            mark = _MARKS[part.verdict]
            filled = colour if part.verdict is not Verdict.INCONCLUSIVE else PALETTE["paper"]
            axes.plot([part.delta], [height], mark, mec=colour, mfc=filled, ms=8)
        names = [clipped(part.name, 18) for part in parts]
        axes.set(yticks=range(len(parts)), yticklabels=names, ylim=(len(parts) - 0.5, -0.5))
        right = axes.secondary_yaxis("right")
        right.set_yticks(range(len(parts)), [f"q {part.q:.2g}" for part in parts])
        right.tick_params(length=0)
        right.spines["right"].set_visible(False)
        axes.set_xlabel("difference in AUC")
        _few_ticks(axes, "x", 4)

    return _drawn(draw, 1.0 + 0.28 * len(parts))


def reliability(found: Comparison) -> "Figure":
    """The mean label against the mean score, in bins of equal row count."""
    sides = [(name, side.reliability) for name, side in _sides(found)]
    curves = [(name, _there(bins, "probabilities", "scores in (0, 1)")) for name, bins in sides]

    def draw(axes: "Axes") -> None:
        from matplotlib.ticker import LogLocator, NullLocator

        values = np.concatenate([np.concatenate(bins[:2]) for _, bins in curves])
        rare = values.min() > 0 and values.max() > 20 * values.min()
        ends = [values.min() / 1.3, min(1, values.max() * 1.3)] if rare else [0, values.max()]
        axes.plot(ends, ends, color=PALETTE["muted"], linewidth=1, dashes=(2, 3))
        for name, bins in curves:
            axes.plot(bins.scores, bins.labels, label=name, ms=5, marker="o", **_LINES[name])
        if rare:
            axes.set(xscale="log", yscale="log")
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(LogLocator(subs=(1, 3)))
                axis.set_major_formatter("{x:.2g}")
                axis.set_minor_locator(NullLocator())
        axes.set(xlabel="mean score of a bin of rows", ylabel="share of positives", aspect="equal")
        axes.legend(frameon=False, loc="upper left")

    return _drawn(draw, 4.6)


def scores(found: Comparison) -> "Figure":
    """How many rows have which pair of scores; on the line both models agree."""
    joint = found.score_difference.joint

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
        axes.plot(ends, ends, color=PALETTE["muted"], linewidth=1, dashes=(2, 3))
        what = "logit of the {} score" if joint.logits else "{} score"
        axes.set(xlabel=what.format("baseline's"), ylabel=what.format("candidate's"))

    return _drawn(draw, 4.6)


def differences(found: Comparison) -> "Figure":
    """A histogram of candidate score - baseline score; the outermost bars hold all beyond."""
    apart = found.score_difference

    def draw(axes: "Axes") -> None:
        axes.stairs(apart.counts, apart.edges, fill=True, color=PALETTE["baseline"])
        axes.set(xlim=apart.edges[[0, -1]], ylabel="rows")
        axes.set_xlabel("candidate score − baseline score")
        reach = float(apart.edges[-1])
        axes.set_xticks([-reach, 0, reach], [f"−{reach:.2g}", "0", f"+{reach:.2g}"])
        _few_ticks(axes, "y", 4)

    return _drawn(draw, 2.8)


def surest_first(parts: Sequence[Part]) -> List[Part]:
    """By rising p-value; those without one last."""
    return sorted(parts, key=lambda part: 2.0 if part.p is None else part.p)


_LINES: Dict[str, Dict[str, Any]] = {
    "baseline": {"color": PALETTE["baseline"], "linewidth": 2.5},
    "candidate": {"color": PALETTE["candidate"], "linewidth": 1.8, "dashes": (5, 2)},
}

_Value = TypeVar("_Value")


def _there(value: Optional[_Value], what: str, source: str) -> _Value:
    if value is None:
        raise UsageError(f"this comparison has no {what} to draw; they come from {source}")
    return value


def _sides(found: Comparison) -> Tuple[Tuple[str, Any], ...]:
    return (("baseline", found.baseline), ("candidate", found.candidate))


def _band(axes: "Axes", margin: float, span: Any, line: Any) -> None:
    span(-margin, margin, color=PALETTE["band"], zorder=0)
    for value in (-margin, margin):
        line(value, color=PALETTE["edge"], linewidth=1.2, dashes=(4, 3), zorder=1)
    line(0, color=PALETTE["muted"], linewidth=1, dashes=(2, 3), zorder=1)


def _label(axes: "Axes", at: Tuple[float, float], text: str, offset: Tuple[int, int]) -> None:
    axes.annotate(text, at, offset, textcoords="offset points", ha="center")


def _few_ticks(axes: "Axes", axis: Any, most: int) -> None:
    axes.locator_params(axis=axis, nbins=most)
    axes.ticklabel_format(axis=axis, useOffset=False, style="plain")


def _rgb(colour: str) -> Tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def _drawn(draw: Callable[["Axes"], None], height: float) -> "Figure":
    """A figure of its own: pyplot neither keeps it nor shows it a second time."""
    try:
        import matplotlib

        from parity.report.svg import Picture
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the Python package {error.name!r}, which draws the figures, is not installed; "
            "run: pip install 'semisync[report]'"
        ) from error
    with matplotlib.rc_context(_STYLE):
        figure = Picture(figsize=(_WIDTH, height), layout="constrained")
        draw(figure.add_subplot())
    return figure
