"""The figure of `semisync simulate --plot`: each mode's pace, and how stale its batches are."""

import os

import numpy as np

from semisync.common.errors import UsageError
from semisync.common.extras import extra

_KINDS = (".svg", ".png", ".pdf")


def check(path):
    """Raises UsageError or MissingExtra if `draw` could not write `path`."""
    if os.path.splitext(path)[1] not in _KINDS:
        raise UsageError("--plot writes {}, not {}".format(", ".join(_KINDS), path))
    with extra("report", "to draw the figure"):
        import matplotlib.figure  # noqa: F401


def draw(results, path):
    """Writes the figure of {mode: `Result`}."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), layout="tight")
    pace, staleness = figure.subplots(1, 2)
    bars = pace.barh(list(results), [result.batches_per_second for result in results.values()])
    pace.bar_label(bars, fmt="%.4g", padding=3)
    pace.margins(x=0.18)
    pace.invert_yaxis()
    pace.set_xlabel("batches per second")
    for name, result in results.items():
        staleness.step(*_shares(result.staleness), where="post", label=name)
    staleness.set_xscale("symlog", linthresh=1)  # a plain logarithmic axis has no 0
    staleness.set_xlabel("staleness, updates of the variables")
    staleness.set_ylabel("share of the batches, at most as stale")
    staleness.legend(fontsize="small", frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    for axes in (pace, staleness):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def _shares(counts):
    """Each staleness, from 0 on, and the share of the batches with at most that."""
    order = sorted(counts)
    shares = np.cumsum([counts[one] for one in order]) / sum(counts.values())
    return [0, *order], [0.0, *shares]
