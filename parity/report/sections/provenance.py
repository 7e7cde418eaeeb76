"""Where the figures come from, so that they can be had again."""

from typing import Any, Mapping

from parity.report.sections.markup import nested, paragraphs


def provenance_section(provenance: Mapping[str, Any]) -> str:
    """What `write_report` was told, as it is."""
    if not provenance:
        return ""
    return "\n".join(
        (
            f'<div class="provenance">{nested(provenance)}</div>',
            paragraphs(
                "A missing value, a score that is not finite, a label other than 0 and 1 or a key "
                "that comes twice in a file ends a comparison, so there was none."
            ),
        )
    )
