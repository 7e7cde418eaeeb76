"""The pace of each mode relative to asynchronous training, a group of bars per case."""

import textwrap

from semisync.common.files import write_text
from semisync.demo.figures import COLOURS

from .summary import ratio

BARS = dict(COLOURS, sync="#6aa84f")


def draw(cases, base, path):
    """Writes an SVG whose text is text.

    Args:
        cases: list of `summary.of_case`.
        base: the mode that is 1.
        path: of the SVG.
    """
    import io

    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "semisync"}):
        figure, axes = plt.subplots(figsize=(2.2 + 1.5 * len(cases), 4), layout="tight")
        _bars(axes, cases, base)
        axes.axhline(1, color="#444444", linewidth=0.8, zorder=0)
        axes.set_ylabel(f"batches/s, {base} = 1")
        titles = ["\n".join(textwrap.wrap(case["title"], 18)) for case in cases]
        axes.set_xticks(range(len(cases)), titles)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    write_text(path, text.getvalue())


def _bars(axes, cases, base):
    """A bar per case and mode: the median ratio within the repeats, whiskers to the extremes."""
    modes = list(cases[0]["modes"])
    width = 0.8 / len(modes)
    for number, mode in enumerate(modes):
        ratios = [_ratio(case, mode, base) for case in cases]
        heights = [spread["median"] for spread in ratios]
        whiskers = [
            [spread["median"] - spread["min"] for spread in ratios],
            [spread["max"] - spread["median"] for spread in ratios],
        ]
        left = (number - (len(modes) - 1) / 2) * width
        places = [place + left for place in range(len(cases))]
        bars = axes.bar(places, heights, 0.92 * width, color=BARS[mode], label=mode)
        axes.errorbar(places, heights, whiskers, fmt="none", ecolor="#222222", capsize=2)
        axes.bar_label(bars, fmt="%.2f", padding=5, fontsize=7)


def _ratio(case, mode, base):
    modes = case["modes"]
    repeats = [
        {mode: modes[mode]["repeats"][i], base: modes[base]["repeats"][i]}
        for i in range(len(modes[base]["repeats"]))
    ]
    return ratio(repeats, "batches_per_second", mode, base)
