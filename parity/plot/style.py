"""How the figures look: colours, sizes, dashes and marks."""

from typing import Any, Dict

from parity.stats.equivalence import Verdict

PALETTE = {  # light; report.css has the same names for both schemes
    "paper": "#ffffff",
    "ink": "#1d2330",
    "muted": "#5b6472",
    "baseline": "#2f6db3",
    "candidate": "#b3470b",
    "band": "#d8ecdf",
    "edge": "#11623a",
}
WIDTH = 5.2  # inches: 374 points, so that letters keep their size on a phone
SETTINGS: Dict[Any, Any] = {  # matplotlib's
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
LINES: Dict[str, Dict[str, Any]] = {  # of either model
    "baseline": {"color": PALETTE["baseline"], "linewidth": 2.5},
    "candidate": {"color": PALETTE["candidate"], "linewidth": 1.8, "dashes": (5, 2)},
}
GUIDE: Dict[str, Any] = {"color": PALETTE["muted"], "linewidth": 1, "dashes": (2, 3)}
MARKS = {Verdict.EQUIVALENT: "o", Verdict.NOT_EQUIVALENT: "X", Verdict.INCONCLUSIVE: "D"}
