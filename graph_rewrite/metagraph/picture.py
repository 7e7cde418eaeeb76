"""What a rewrite changed, drawn for a person: the graph before on the left, after on the right.

Each parameter server is a box with the variables that it trains. Grey stays as it was; orange is
done otherwise now; green is new.
"""

import collections
from typing import Any
from xml.sax.saxutils import escape

WIDTH, GAP, MARGIN, LINE = 470, 90, 30, 19  # px
NAMED = 6  # variables that a box names
GREY, ORANGE, GREEN = "#777777", "#c4661f", "#2b7a3d"


def draw(report):
    """The SVG of a `Report`, a string."""
    servers: Any = collections.OrderedDict()  # device -> [Trained]
    for trained in report.trained:
        servers.setdefault(trained.device or "no device", []).append(trained)
    canvas = _Canvas()
    tops = [_column(canvas, 0, servers, report, after=False)]
    tops.append(_column(canvas, WIDTH + GAP, servers, report, after=True))
    return canvas.svg(2 * WIDTH + GAP + 2 * MARGIN, max(tops) + MARGIN)


def _column(canvas, x, servers, report, after):
    """Draws one side; returns how far down it goes."""
    batches = report.settings["batches_per_step"]
    x += MARGIN
    canvas.text(x, MARGIN, "after" if after else "before", GREY, bold=True)
    worker = ["computes the gradients of its batch"]
    if after:
        worker += ["takes a ticket, and sends them under it"]
    y = canvas.box(x, MARGIN + 14, "each worker", worker, GREEN if after else GREY)
    for device, trained in servers.items():
        y = _arrow(canvas, x, y, "every batch", GREEN if after else ORANGE)
        lines = []
        if after:
            lines += ["keeps the gradients of a batch until its global batch is whole", ""]
        for each in trained[:NAMED]:
            lines.append("{}  \u2190  {}".format(each.variable, " + ".join(sorted(set(each.by)))))
        if len(trained) > NAMED:
            lines.append("and {} more variables".format(len(trained) - NAMED))
        y = canvas.box(x, y, device, lines, GREEN if after else ORANGE)
    if after:
        y = _arrow(canvas, x, y, "once for {} batches".format(batches), GREEN, up=True)
        policy = report.settings["staleness"]
        weighed = "weighs each batch by its staleness: {}".format(policy)
        lines = [weighed if policy else "counts every batch fully, however stale"]
        lines.append("runs {} ops that write, once a global step".format(len(report.chiefs)))
        y = canvas.box(x, y, "the chief", lines, GREEN)
    y += 10
    told = [("changed", report.changes), ("left as it was", report.left)]
    for title, sentences in told + [("warnings", report.warnings)]:
        if after and sentences:
            y += 2 * LINE
            canvas.text(x, y, title, GREY, bold=True)
            for line in [line for sentence in sentences for line in _wrapped(sentence, 66)]:
                y += LINE
                canvas.text(x, y, line, GREY)
    return y


def _arrow(canvas, x, y, label, colour, up=False):
    tip, tail = (y + 4, y + 36) if up else (y + 36, y + 4)
    canvas.arrow(x + 30, tail, tip, colour)
    canvas.text(x + 44, y + 24, label, colour)
    return y + 40


def _wrapped(sentence, width):
    lines = [""]
    for word in sentence.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = (lines[-1] + " " + word).strip()
    return lines


class _Canvas:
    def __init__(self):
        self._parts = []

    def text(self, x, y, words, colour, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        shape = '<text x="{}" y="{}" fill="{}"{}>{}</text>'
        self._parts.append(shape.format(x, y, colour, weight, escape(words)))

    def box(self, x, y, title, lines, colour):
        """A titled box; returns its lower edge."""
        height = (len(lines) + 1) * LINE + 14
        shape = '<rect x="{}" y="{}" width="{}" height="{}" rx="5" fill="none" stroke="{}"/>'
        self._parts.append(shape.format(x, y, WIDTH, height, colour))
        self.text(x + 10, y + LINE + 2, title, colour, bold=True)
        for number, line in enumerate(lines):
            shown = line if len(line) <= 62 else line[:61] + "\u2026"
            self.text(x + 10, y + (number + 2) * LINE + 2, shown, "#222222")
        return y + height

    def arrow(self, x, tail, tip, colour):
        back = -7 if tip > tail else 7
        path = "M{x} {tail}L{x} {tip}M{left} {b}L{x} {tip}L{right} {b}".format(
            x=x, tail=tail, tip=tip, left=x - 5, right=x + 5, b=tip + back
        )
        self._parts.append('<path d="{}" fill="none" stroke="{}"/>'.format(path, colour))

    def svg(self, width, height):
        head = (
            '<svg xmlns="http://www.w3.org/2000/svg" width="{w}" height="{h}" '
            'viewBox="0 0 {w} {h}" font-family="sans-serif" font-size="13">'
            '<rect width="{w}" height="{h}" fill="white"/>'
        ).format(w=width, h=height)
        return "\n".join([head] + self._parts + ["</svg>", ""])
