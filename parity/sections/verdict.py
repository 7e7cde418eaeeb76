"""The first screen: what was compared, what was found, what to do."""

import html

from parity import plot, words
from parity.result import Comparison
from parity.sections.markup import drawing, paragraphs
from parity.words import signed


def verdict_section(found: Comparison) -> str:
    """The verdict in words and as a figure."""
    verdict = found.verdict
    told = "".join(
        f"<dt>{name}</dt><dd>{html.escape(sentence)}</dd>"
        for name, sentence in (
            ("Compared", words.compared(found)),
            ("Found", words.finding(found)),
            ("What to do", words.advice(found)),
        )
    )
    low, high, delta = (signed(value, found.margin) for value in (*found.interval, found.delta))
    return "\n".join(
        (
            f'<div class="verdict {verdict.value}">',
            f"<strong>{words.MARK[verdict]} {words.NAME[verdict]}</strong>",
            paragraphs(words.headline(found)),
            f"<dl>{told}</dl>",
            "</div>",
            drawing(
                "Difference in AUC, candidate − baseline",
                plot.interval(found),
                "interval",
                f"The interval runs from {low} to {high} around {delta}; the band of equivalence "
                f"is plus and minus {found.margin:g}.",
            ),
            f'<p class="small">{html.escape(words.EXPLANATION)}</p>',
        )
    )
