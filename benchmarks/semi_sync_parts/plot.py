"""The pace of each mode relative to asynchronous training, a group of bars per case."""

import statistics
import textwrap

from benchmarks.harness.picture import picture
from benchmarks.harness.turns import ratios
from semisync.demo.report import COLOURS

from .table import values

BARS = dict(COLOURS, sync="#6aa84f")


def draw(cases, base, path):
    """Writes an SVG whose text is text.

    Args:
        cases: as `table` has them.
        base: the mode that is 1.
        path: of the SVG.
    """
    with picture(path, figsize=(2.2 + 1.5 * len(cases), 4)) as axes:
        _bars(axes, cases, base)
        axes.axhline(1, color="#444444", linewidth=0.8, zorder=0)
        axes.set_ylabel(f"batches/s, {base} = 1")
        titles = ["\n".join(textwrap.wrap(case["title"], 18)) for case in cases]
        axes.set_xticks(range(len(cases)), titles)
        axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1))


def _bars(axes, cases, base):
    """A bar per case and mode: the median ratio within the repeats, whiskers to the extremes."""
    modes = sorted(cases[0]["repeats"][0])
    width = 0.8 / len(modes)
    for number, mode in enumerate(modes):
        found = [
            ratios(*(values(case, one, "batches_per_second") for one in (mode, base)))
            for case in cases
        ]
        heights = [statistics.median(one) for one in found]
        whiskers = [
            [height - min(one) for height, one in zip(heights, found)],
            [max(one) - height for height, one in zip(heights, found)],
        ]
        left = (number - (len(modes) - 1) / 2) * width
        places = [place + left for place in range(len(cases))]
        bars = axes.bar(places, heights, 0.92 * width, color=BARS[mode], label=mode)
        axes.errorbar(places, heights, whiskers, fmt="none", ecolor="#222222", capsize=2)
        axes.bar_label(bars, fmt="%.2f", padding=5, fontsize=7)
