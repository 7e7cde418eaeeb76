"""Shared by the figures: their canvas, the margin's band, ticks."""

from typing import TYPE_CHECKING, Any, Callable, Optional, Tuple, TypeVar

from parity.plot.style import GUIDE, PALETTE, SETTINGS, WIDTH
from parity.result import Comparison, Side
from semisync.common.errors import UsageError
from semisync.common.extras import extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Value = TypeVar("_Value")


def drawn(draw: Callable[["Axes"], None], height: float) -> "Figure":
    """A standalone figure, which pyplot neither keeps nor shows a second time."""
    with extra("report", "to draw the figures"):
        import matplotlib

        from parity.plot.svg import Picture
    with matplotlib.rc_context(SETTINGS):
        figure = Picture(figsize=(WIDTH, height), layout="constrained")
        draw(figure.add_subplot())
    return figure


def required(value: Optional[_Value], kind: str, source: str) -> _Value:
    """The part of a comparison that is to be drawn; raises UsageError if it has none."""
    if value is None:
        raise UsageError(f"this comparison has no {kind} to draw; they come from {source}")
    return value


def sides(comparison: Comparison) -> Tuple[Tuple[str, Side], ...]:
    """Both models' figures by name."""
    return (("baseline", comparison.baseline), ("candidate", comparison.candidate))


def margin_band(margin: float, span: Any, line: Any) -> None:
    """The band of equivalence around 0, by axvspan and axvline or axhspan and axhline."""
    span(-margin, margin, color=PALETTE["band"], zorder=0)
    for value in (-margin, margin):
        line(value, color=PALETTE["edge"], linewidth=1.2, dashes=(4, 3), zorder=1)
    line(0, **GUIDE, zorder=1)


def few_ticks(axes: "Axes", axis: Any, most: int) -> None:
    """Draws at most so many ticks, with their numbers in full."""
    axes.locator_params(axis=axis, nbins=most)
    axes.ticklabel_format(axis=axis, useOffset=False, style="plain")
