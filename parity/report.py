"""The report: one HTML file for people, one JSON file for programs.

1. The verdict comes first, in words and as a figure; then what to do, the figures, the provenance.
2. report.html is whole in itself: styles and figures inline, no script, nothing fetched.
3. report.json is strict JSON, `Comparison.to_json()` with "title" and "provenance" added.
4. Each file is written beside its place and moved there when whole, the JSON last, so a program
   that finds a new report.json finds the new report.html as well.
"""

import html
import json
import os
import pathlib
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple, Union

from parity import figures, words
from parity.equivalence import CONFIDENCE
from parity.result import Comparison
from parity.words import plain, signed
from semisync.errors import UsageError
from semisync.files import write_text

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body class="parity-page">
{section}
</body>
</html>
"""


class ReportFiles(NamedTuple):
    """Where a report was written."""

    html: pathlib.Path
    json: pathlib.Path


def write_report(
    comparison: Comparison,
    directory: Union[str, "os.PathLike[str]"],
    title: str = "AUC parity",
    provenance: Optional[Mapping[str, Any]] = None,
) -> ReportFiles:
    """Writes report.html and report.json, replacing those that are there.

    Args:
        comparison: from `parity.compare`.
        directory: made if it is not there.
        title: the heading.
        provenance: what was compared, as nested mappings, lists and plain values of strict JSON.

    Raises: UsageError where the directory cannot be written.
    """
    provenance = dict(provenance or {})
    page = _PAGE.format(
        title=html.escape(f"{words.NAME[comparison.verdict]} - {title}"),
        style=stylesheet(),
        section=report_section(comparison, title, provenance),
    )
    record = {**comparison.to_json(), "title": title, "provenance": provenance}
    text = json.dumps(record, indent=2, allow_nan=False) + "\n"
    folder = pathlib.Path(directory)
    files = ReportFiles(folder / "report.html", folder / "report.json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_text(files.html, page)
        write_text(files.json, text)
    except OSError as error:
        raise UsageError(f"the report cannot be written to {folder}: {error.strerror}") from error
    return files


def stylesheet() -> str:
    """The CSS that `report_section` needs, scoped to its class, and a frame for the page."""
    return pathlib.Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def report_section(
    comparison: Comparison,
    title: str = "AUC parity",
    provenance: Optional[Mapping[str, Any]] = None,
    heading_level: int = 1,
) -> str:
    """The report as one <section> of HTML, to embed in a page that has `stylesheet()`.

    Args:
        comparison, title, provenance: as for `write_report`.
        heading_level: of the title, 1 to 5; the parts below it are one level down.
    """
    verdict = comparison.verdict

    def part(name: str) -> str:
        return f'<h{heading_level + 1} class="part">{name}</h{heading_level + 1}>'

    blocks = [
        '<section class="parity">',
        f'<h{heading_level} class="title">{html.escape(title)}</h{heading_level}>',
        f'<div class="verdict {verdict.value}">',
        f"<strong>{words.MARK[verdict]} {words.NAME[verdict]}</strong>",
        _paragraphs(words.headline(comparison), words.finding(comparison)),
        _paragraphs(f"Compared on {words.sample(comparison)}."),
        "</div>",
        _captioned("Difference in AUC, candidate − baseline", figures.interval_figure(comparison)),
        part("What to do"),
        _paragraphs(words.advice(comparison), *comparison.notes, words.limits(comparison)),
        part("Figures"),
        _sides_table(comparison),
        _difference_table(comparison),
        '<div class="pair">',
        _captioned("ROC curves", figures.roc_figure(comparison)),
        _captioned("Row by row", figures.difference_figure(comparison.score_difference)),
        "</div>",
    ]
    if provenance:
        blocks += [part("Provenance"), f'<div class="provenance">{_nested(provenance)}</div>']
    return "\n".join([*blocks, "</section>"])


def _sides_table(found: Comparison) -> str:
    margin, before, after = found.margin, found.baseline, found.candidate

    def row(name: str, old: float, new: float, change: str = "") -> Tuple[str, str, str, str]:
        return name, plain(old, margin), plain(new, margin), change

    body = [
        row("AUC", before.auc, after.auc, signed(found.delta, margin)),
        row("standard error of the AUC", before.standard_error, after.standard_error),
    ]
    if before.logloss is not None and after.logloss is not None:
        change = signed(after.logloss - before.logloss, margin)
        body.append(row("log loss, nats", before.logloss, after.logloss, change))
    body.append(
        ("tied pairs, each half won", f"{before.tied_pairs:,}", f"{after.tied_pairs:,}", "")
    )
    return _table(body, ("", "baseline", "candidate", "difference"))


def _difference_table(found: Comparison) -> str:
    low, high = (signed(value, found.margin) for value in found.interval)
    apart = found.score_difference
    body = [
        ("difference in AUC", signed(found.delta, found.margin)),
        ("its standard error, paired", f"{found.standard_error:.2g}"),
        (f"its {CONFIDENCE:.0%} interval", f"{low} to {high}"),
        ("margin", f"±{found.margin:g}"),
        ("rows", f"{found.rows:,}"),
        ("positive", f"{found.positives:,} ({found.positives / found.rows:.2%})"),
    ]
    if found.clusters is not None:
        body += [
            ("clusters", f"{found.clusters:,}"),
            ("standard error if rows were independent", f"{found.standard_error_independent:.2g}"),
        ]
    if found.design_effect is not None:
        body.append(("design effect of the clusters", f"{found.design_effect:.2f}"))
    if found.rows_to_settle is not None:
        body.append(("rows that would settle it, about", words.rounded(found.rows_to_settle)))
    body.append(
        (
            "|score difference|: median, 99th percentile, largest",
            f"{apart.p50:.2g}, {apart.p99:.2g}, {apart.max:.2g}",
        )
    )
    return _table(body)


def _table(body: List[Any], head: Any = ()) -> str:
    lines = ["<table>"]
    if head:
        lines.append(f"<thead><tr>{''.join(f'<th>{text}</th>' for text in head)}</tr></thead>")
    for name, *cells in body:
        data = "".join(f"<td>{html.escape(text)}</td>" for text in cells)
        lines.append(f'<tr><th scope="row">{html.escape(name)}</th>{data}</tr>')
    return "\n".join([*lines, "</table>"])


def _nested(value: Any) -> str:
    """Mappings as tables, lists item after item, anything else as text."""
    if isinstance(value, Mapping):
        rows = "".join(
            f'<tr><th scope="row">{html.escape(str(key))}</th><td class="text">{_nested(item)}</td>'
            "</tr>"
            for key, item in value.items()
        )
        return f"<table>{rows}</table>"
    if isinstance(value, (list, tuple)):
        return "\n".join(map(_nested, value))
    return html.escape(f"{value:,}" if type(value) is int else str(value))


def _paragraphs(*sentences: str) -> str:
    return "\n".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


def _captioned(caption: str, figure: str) -> str:
    return f"<figure><figcaption>{html.escape(caption)}</figcaption>\n{figure}</figure>"
