"""The first screen: what was compared, what was found, what to do."""

import html
from typing import Any, Mapping, Optional

from parity import plot
from parity.report import words
from parity.report.sections.markup import drawing, paragraphs
from parity.report.subject import subject
from parity.report.words import signed
from parity.result import Comparison


def verdict_section(found: Comparison, provenance: Optional[Mapping[str, Any]] = None) -> str:
    """The verdict in words and as a figure.

    Args:
        provenance: names the columns and files (parity.report.subject).
    """
    decision = found.decision
    told = "".join(
        f"<dt>{name}</dt>"
        + "".join(f"<dd>{html.escape(text[0].upper() + text[1:])}</dd>" for text in texts)
        for name, texts in (
            ("Compared", [words.compared(found), *filter(None, [subject(provenance)])]),
            ("Found", [words.finding(found), *words.rare_failures_in_words(found)]),
            ("Required", words.gates_in_words(found)),
            ("Beyond AUC", words.beyond_auc(found)),
            ("What to do", [words.advice(found)]),
        )
        if texts
    )
    warnings = "".join(
        f'<p class="warning"><b>Warning:</b> {html.escape(sentence)}</p>\n'
        for sentence in found.warnings
    )
    low, high, delta = (signed(value, found.margin) for value in (*found.interval, found.delta))
    return "\n".join(
        (
            f'<div class="verdict {decision.value}">',
            f"<strong>{words.MARK[decision]} {words.NAME[decision]}</strong>",
            paragraphs(words.headline(found)),
            f"{warnings}<dl>{told}</dl>",
            "</div>",
            drawing(
                "Difference in AUC, candidate − baseline",
                plot.interval(found),
                "interval",
                f"The interval runs from {low} to {high} around {delta}; the band of equivalence "
                f"is plus and minus {found.margin:g}.",
            ),
            f'<p class="small">{html.escape(words.explanation(found))}</p>',
        )
    )
