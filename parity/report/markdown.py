"""The report in a few lines of Markdown, for a comment on a pull request."""

import html
import re
from typing import Any, Mapping, Optional

from parity.diagnosis.words import in_words
from parity.report import words
from parity.report.sections.sides import cells, figures_of
from parity.report.subject import subject
from parity.report.words import clipped, signed
from parity.result import Comparison

_SPECIAL = re.compile(r"([\\`*_{}\[\]|~]|^[-+])")
_MENTIONS = re.compile("([@#])")  # of people and issues, which escaping does not stop


def markdown(found: Comparison, title: str, provenance: Optional[Mapping[str, Any]] = None) -> str:
    """Verdict, table of both models, what to do; names are shown as they are, never rendered.

    Args:
        provenance: names the columns and files (parity.report.subject).
    """
    low, high = (signed(value, found.margin) for value in found.interval)
    lines = [
        f"### {words.MARK[found.decision]} {words.NAME[found.decision]}: {_literal(title)}",
        "",
        _literal(words.headline(found)),
        "",
        *(f"**Warning.** {_literal(sentence)}\n" for sentence in found.warnings),
        "| | baseline | candidate | difference |",
        "|---|---|---|---|",
    ]
    for name, old, new in figures_of(found):
        if old is None and new is None:
            continue
        before, after, change = cells(old, new, found.margin)
        if name == "AUC":
            change = f"**{change}** [{low}, {high}], margin ±{found.margin:g}"
        lines.append(f"| {_literal(name)} | {before} | {after} | {change} |")
    lines += ["", f"**What to do.** {_literal(words.advice(found))}", ""]
    told = [
        *filter(None, [subject(provenance)]),
        words.sample(found) + ".",
        *words.rare_failures_in_words(found),
        *(f"Required: {told}" for told in words.gates_in_words(found)),
        *in_words(found.diagnosis),
        *words.parts_in_words(found),
        *found.notes,
    ]
    return "\n".join([*lines, *(f"- {_literal(sentence)}" for sentence in told)]) + "\n"


def _literal(text: str) -> str:
    """One line of text that Markdown shows as it is written."""
    line = html.escape(" ".join(clipped(text, 1000).split()), quote=False)
    return _MENTIONS.sub("\\1\u200b", _SPECIAL.sub(r"\\\1", line))
