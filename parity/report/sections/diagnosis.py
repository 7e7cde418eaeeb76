"""Why the models may differ: the suspects of a diagnosis."""

import html

from parity.diagnosis.words import weight
from parity.report.sections.markup import paragraphs
from parity.result import Comparison


def diagnosis_section(found: Comparison) -> str:
    """Each with its evidence and what to do about it."""
    if not found.diagnosis:
        return ""
    items = []
    for one in found.diagnosis:
        remedy = f'<p class="remedy">{html.escape(one.remedy)}</p>'
        name = f"<strong>{html.escape(one.name)}</strong>: {html.escape(weight(one))}"
        items.append(f"<li>{name}\n{paragraphs(*one.evidence)}\n{remedy}</li>")
    return "\n".join(
        (
            paragraphs(
                "Each suspect stands with the share of the difference between the scores that it "
                "explains, where the rows show it. Of a pattern, and of settings that are known to "
                "differ, it is what they could explain at most, weighed by what stronger evidence "
                "leaves open: it proves nothing."
            ),
            f'<ol class="suspects">\n{chr(10).join(items)}\n</ol>',
        )
    )
