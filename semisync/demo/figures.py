"""The demo's figures: pace, staleness and quality of the modes, one panel each."""

import io
from typing import Any, Callable, Dict, Optional, Sequence

COLOURS = {
    "async": "#8a8a8a",
    "native-sync": "#c4671b",
    "semi-sync": "#1f5fa8",
    "balanced": "#7b4fa3",
    "sync": "#3b8a4e",
}

Modes = Dict[str, Dict[str, Any]]
Panel = Callable[[Any, Modes, Optional[float]], None]


def pace(axes: Any, modes: Modes, optimum: Optional[float]) -> None:
    """Batches per second, of all workers together."""
    bars = axes.bar(
        [_broken(name) for name in modes],
        [mode["batches_per_second"] for mode in modes.values()],
        color=[COLOURS[name] for name in modes],
    )
    axes.bar_label(bars, fmt="%.1f")
    axes.set_title("batches per second")


def staleness(axes: Any, modes: Modes, optimum: Optional[float]) -> None:
    """The share of batches by staleness."""
    for name, mode in modes.items():
        counts = {int(steps): count for steps, count in mode["staleness"]["histogram"].items()}
        shares = [counts.get(s, 0) / sum(counts.values()) for s in range(max(counts) + 1)]
        axes.plot(shares, marker="o", markersize=4, color=COLOURS[name], label=name)
    axes.set_title("share of batches by staleness, in steps")
    axes.legend(frameon=False)


def quality(axes: Any, modes: Modes, optimum: Optional[float]) -> None:
    """The held-out AUC of each mode, and the best possible where it is known."""
    for name, mode in modes.items():
        axes.scatter([_broken(name)], [mode["auc"]], color=COLOURS[name], zorder=3)
        axes.annotate(
            f"{mode['auc']:.4f}",
            (_broken(name), mode["auc"]),
            (0, 8),
            textcoords="offset points",
            ha="center",
        )
    axes.set_title("AUC on the held-out rows")
    axes.margins(0.25, 0.3)
    if optimum is not None:
        axes.axhline(optimum, linestyle="--", color="#444444")
        axes.annotate("optimum", (0, optimum), (0, 3), textcoords="offset points")


def _broken(name: str) -> str:
    """A mode's name in two lines, if it has two words: there are many side by side."""
    return name.replace("-", "-\n")


PANELS: Sequence[Panel] = (pace, staleness, quality)


def draw(panels: Sequence[Panel], modes: Modes, optimum: Optional[float]) -> str:
    """The panels side by side, an SVG document whose text is text."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    with plt.rc_context({"svg.fonttype": "none", "font.size": 10, "svg.hashsalt": "semisync"}):
        figure, grid = plt.subplots(
            1, len(panels), figsize=(4.2 * len(panels), 3.2), layout="tight", squeeze=False
        )
        for panel, axes in zip(panels, grid[0]):
            panel(axes, modes, optimum)
            axes.spines[["top", "right"]].set_visible(False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        plt.close(figure)
    return text.getvalue()
