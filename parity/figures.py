"""The report's figures as inline SVG, written by hand: no dependency, and text stays text.

Each is drawn in a box 400 wide, so that its letters can still be read on a phone, and says in
<title> and <desc> what it shows. Nothing is told by colour alone: lines differ in dash, marks in
shape. Colours and letter sizes are classes of report.css.
"""

import html
from typing import Iterable, List, Tuple

import numpy as np

from parity.agreement import ScoreDifference
from parity.result import Comparison
from parity.words import signed

_WIDTH = 400


def interval_figure(found: Comparison) -> str:
    """The 90 % interval of the difference against the band of +-margin."""
    low, high = found.interval
    reach = 1.15 * max(1.5 * found.margin, abs(low), abs(high))

    def at(value: float) -> float:
        return _WIDTH / 2 + value / reach * (_WIDTH / 2 - 12)

    margin = found.margin
    left, right = at(-margin), at(margin)
    roomy = right - left > 180  # else the labels of the margin would run into that of 0
    anchors = ("middle", "middle") if roomy else ("end", "start")
    label_at = min(max(at(found.delta), 40), _WIDTH - 40)
    parts = [
        f'<rect class="band" x="{left:.1f}" y="26" width="{right - left:.1f}" height="74"/>',
        f'<line class="axis" x1="12" x2="{_WIDTH - 12}" y1="100" y2="100"/>',
        f'<line class="zero" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="26" y2="100"/>',
        *(
            f'<line class="edge" x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="106"/>'
            for x in (left, right)
        ),
        _text(left, 122, f"−{margin:g}", anchors[0]),
        _text(at(0), 122, "0") if roomy else "",
        _text(right, 122, f"+{margin:g}", anchors[1]),
        _text(at(0), 14, "equivalent inside the band"),
        f'<line class="interval" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="72" y2="72"/>',
        *(
            f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="60" y2="84"/>'
            for x in (at(low), at(high))
        ),
        f'<circle class="estimate" cx="{at(found.delta):.1f}" cy="72" r="5"/>',
        _text(label_at, 50, signed(found.delta, margin)),
        _text(4, 144, "← candidate worse", "start"),
        _text(_WIDTH - 4, 144, "candidate better →", "end"),
    ]
    texts = [signed(value, found.margin) for value in (low, high, found.delta)]
    return _figure(
        152,
        "Difference in AUC against the margin",
        f"The interval runs from {texts[0]} to {texts[1]} around {texts[2]}; the band of "
        f"equivalence is plus and minus {found.margin:g}.",
        parts,
    )


def roc_figure(found: Comparison) -> str:
    """Both models' ROC curves; a square."""
    left, top, side = 46, 12, 342

    def trace(curve: Tuple[np.ndarray, np.ndarray]) -> str:
        return " ".join(f"{left + x * side:.1f},{top + (1 - y) * side:.1f}" for x, y in zip(*curve))

    bottom = top + side
    parts = [
        f'<rect class="frame" x="{left}" y="{top}" width="{side}" height="{side}"/>',
        f'<line class="zero" x1="{left}" y1="{bottom}" x2="{left + side}" y2="{top}"/>',
        f'<polyline class="baseline" points="{trace(found.baseline.curve)}"/>',
        f'<polyline class="candidate" points="{trace(found.candidate.curve)}"/>',
        f'<line class="baseline" x1="210" x2="250" y1="{bottom - 44}" y2="{bottom - 44}"/>',
        _text(258, bottom - 39, "baseline", "start"),
        f'<line class="candidate" x1="210" x2="250" y1="{bottom - 20}" y2="{bottom - 20}"/>',
        _text(258, bottom - 15, "candidate", "start"),
        *(_text(left + share * side, bottom + 18, f"{share:g}") for share in (0, 0.5, 1)),
        *(_text(left - 6, bottom - share * side + 5, f"{share:g}", "end") for share in (0, 0.5, 1)),
        _text(left + side / 2, bottom + 38, "false positive rate"),
        f'<g transform="translate(14 {top + side / 2}) rotate(-90)">'
        f"{_text(0, 0, 'true positive rate')}</g>",
    ]
    return _figure(
        bottom + 46,
        "ROC curves",
        "True positive rate against false positive rate, one curve a model.",
        parts,
    )


def difference_figure(difference: ScoreDifference) -> str:
    """Histogram of candidate score - baseline score over rows."""
    left, top, width, height = 20, 26, 360, 200
    bottom, bins = top + height, len(difference.counts)
    most = int(difference.counts.max())
    step = width / bins
    bars = (
        f'<rect class="bar" x="{left + i * step + 0.5:.1f}" y="{bottom - tall:.1f}" '
        f'width="{step - 1:.1f}" height="{tall:.1f}"/>'
        for i, tall in enumerate(difference.counts / most * height)
        if tall
    )
    reach = float(difference.edges[-1])
    parts = [
        *bars,
        f'<line class="axis" x1="{left}" x2="{left + width}" y1="{bottom}" y2="{bottom}"/>',
        _text(left, bottom + 18, f"−{reach:.2g}", "start"),
        _text(left + width / 2, bottom + 18, "0"),
        _text(left + width, bottom + 18, f"+{reach:.2g}", "end"),
        _text(left + width / 2, bottom + 38, "candidate score − baseline score"),
        _text(left + width / 2, 16, f"rows a bin; the highest holds {most:,}"),
    ]
    return _figure(
        bottom + 46,
        "Differences between the scores",
        "Histogram of candidate score minus baseline score; the outermost bars hold all beyond.",
        parts,
    )


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _figure(height: float, title: str, description: str, parts: Iterable[str]) -> str:
    lines: List[str] = [
        f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img">',
        f"<title>{html.escape(title)}</title><desc>{html.escape(description)}</desc>",
        *(part for part in parts if part),
        "</svg>",
    ]
    return "\n".join(lines)
