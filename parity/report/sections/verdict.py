"""The verdict, its likely causes, its limits, and its provenance."""

from typing import Any, Mapping, Optional

from parity import plot
from parity.formatting import signed
from parity.report.markup import drawing, nested, paragraphs
from parity.report.words.advice import limits, what_to_do
from parity.report.words.details import (
    beyond_auc,
    first_suspect,
    gates_in_words,
    weight_in_words,
)
from parity.report.words.subject import subject
from parity.report.words.verdict import (
    MARK,
    NAME,
    compared,
    explanation,
    finding,
    headline,
    rare_failures_in_words,
)
from parity.result import Comparison
from semisync.common.markup import in_html


def verdict_section(comparison: Comparison, provenance: Optional[Mapping[str, Any]] = None) -> str:
    """The first screen: the verdict in words and as a figure.

    Args:
        provenance: names the columns and files (parity.report.words.subject).
    """
    decision, margin = comparison.decision, comparison.margin
    terms = "".join(
        f"<dt>{name}</dt>"
        + "".join(f"<dd>{in_html(text[0].upper() + text[1:])}</dd>" for text in texts)
        for name, texts in (
            ("Compared", [compared(comparison), *filter(None, [subject(provenance)])]),
            ("Found", [finding(comparison), *rare_failures_in_words(comparison)]),
            ("Required", gates_in_words(comparison)),
            ("Beyond AUC", beyond_auc(comparison)),
            ("First suspect", first_suspect(comparison)),
            ("What to do", [what_to_do(comparison)]),
        )
        if texts
    )
    warnings = "".join(
        f'<p class="warning"><b>Warning:</b> {in_html(sentence)}</p>\n'
        for sentence in comparison.warnings
    )
    low, high, delta = (signed(v, margin) for v in (*comparison.interval, comparison.delta))
    return "\n".join(
        (
            f'<div class="verdict {decision.value}">',
            f"<strong>{MARK[decision]} {NAME[decision]}</strong>",
            paragraphs(headline(comparison)),
            f"{warnings}<dl>{terms}</dl>",
            "</div>",
            drawing(
                "Difference in AUC, candidate − baseline",
                plot.interval(comparison),
                "interval",
                f"The interval runs from {low} to {high} around {delta}; the band of equivalence "
                f"is plus and minus {margin:g}.",
            ),
            f'<p class="small">{in_html(explanation(comparison))}</p>',
        )
    )


def suspects_section(comparison: Comparison) -> str:
    """Each suspect of a diagnosis, with its evidence and remedy."""
    if not comparison.diagnosis:
        return ""
    items = []
    for suspect in comparison.diagnosis:
        remedy = f'<p class="remedy">{in_html(suspect.remedy)}</p>'
        weight = in_html(weight_in_words(suspect))
        name = f"<strong>{in_html(suspect.name)}</strong>: {weight}"
        items.append(f"<li>{name}\n{paragraphs(*suspect.evidence)}\n{remedy}</li>")
    return "\n".join(
        (
            paragraphs(
                "Each suspect stands with the share of the difference between the scores that it "
                "explains, where the rows show it. For a pattern, and for settings that are known "
                "to differ, it is the most that they could explain, weighed by what stronger "
                "evidence leaves open; it proves nothing."
            ),
            f'<ol class="suspects">\n{chr(10).join(items)}\n</ol>',
        )
    )


def limits_section(comparison: Comparison) -> str:
    """The verdict's limits, then the comparison's own notes."""
    return paragraphs(limits(comparison), *comparison.notes)


def provenance_section(provenance: Mapping[str, Any]) -> str:
    """The provenance of the figures, as `write_report` was given it, to reproduce them."""
    if not provenance:
        return ""
    return "\n".join(
        (
            f'<div class="provenance">{nested(provenance)}</div>',
            paragraphs(
                "A missing value, a score that is not finite, a label other than 0 and 1 or a key "
                "that occurs twice in a file ends a comparison, so there was none."
            ),
        )
    )
