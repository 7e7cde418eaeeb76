"""The report in a few lines of Markdown, for a comment on a pull request."""

import html
import re
from typing import Any, Mapping, Optional

from parity.formatting import clipped, signed
from parity.report.sections.models import cells, figures_of
from parity.report.words.advice import what_to_do
from parity.report.words.details import gates_in_words, parts_in_words, suspects_in_words
from parity.report.words.subject import subject
from parity.report.words.verdict import MARK, NAME, headline, rare_failures_in_words, sample
from parity.result import Comparison
from semisync.common.terminal import shown

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~]|^[-+])")
_MENTIONS = re.compile("([@#])")  # of people and issues, which escaping does not stop


def markdown(
    comparison: Comparison, title: str, provenance: Optional[Mapping[str, Any]] = None
) -> str:
    """Verdict, table of both models, advice; names are shown as they are, never rendered.

    Args:
        provenance: names the columns and files (parity.report.words.subject).
    """
    low, high = (signed(value, comparison.margin) for value in comparison.interval)
    lines = [
        f"### {MARK[comparison.decision]} {NAME[comparison.decision]}: {_literal(title)}",
        "",
        _literal(headline(comparison)),
        "",
        *(f"**Warning.** {_literal(sentence)}\n" for sentence in comparison.warnings),
        "| | baseline | candidate | difference |",
        "|---|---|---|---|",
    ]
    for name, old, new in figures_of(comparison):
        before, after, change = cells(old, new, comparison.margin)
        if name == "AUC":
            change = f"**{change}** [{low}, {high}], margin ±{comparison.margin:g}"
        lines.append(f"| {_literal(name)} | {before} | {after} | {change} |")
    lines += ["", f"**What to do.** {_literal(what_to_do(comparison))}", ""]
    facts = [
        *filter(None, [subject(provenance)]),
        sample(comparison) + ".",
        *rare_failures_in_words(comparison),
        *(f"Required: {sentence}" for sentence in gates_in_words(comparison)),
        *suspects_in_words(comparison.diagnosis),
        *parts_in_words(comparison),
        *comparison.notes,
    ]
    return "\n".join([*lines, *(f"- {_literal(sentence)}" for sentence in facts)]) + "\n"


def _literal(text: str) -> str:
    """One line of text that Markdown shows as it is written."""
    line = html.escape(shown(" ".join(clipped(text, 1000).split())), quote=False)
    return _MENTIONS.sub("\\1\u200b", _SPECIAL.sub(r"\\\1", line))
