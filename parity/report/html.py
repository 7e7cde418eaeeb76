"""The report: a page for people, and for programs JSON, JUnit XML and Markdown.

1. The verdict comes first, in words (parity.report.words) and as a figure; then the sections
   (parity.report.sections).
2. report.html is whole in itself: styles and figures inline, no script, nothing fetched.
3. report.json is strict JSON, `Comparison.to_json()` with "title" and "provenance" added; its
   schema is report.schema.json (parity.report.schema).
4. report.xml (parity.report.junit) and report.md (parity.report.markdown) tell a CI the same.
5. All are written beside their places and moved there when all are whole, the JSON last, so a
   program that finds a new report.json finds the others new as well.
"""

import contextlib
import json
import os
import pathlib
from typing import Any, Mapping, NamedTuple, Optional, Union

from parity.report.junit import junit
from parity.report.markdown import markdown
from parity.report.markup import anchor, escaped, index_of
from parity.report.schema import document
from parity.report.sections import SECTIONS
from parity.report.sections.verdict import provenance_section, verdict_section
from parity.report.words.verdict import NAME
from parity.result import Comparison
from semisync.common.errors import UsageError
from semisync.common.files import replacing

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body class="parity-page">
{sections}
</body>
</html>
"""


class ReportFiles(NamedTuple):
    """The paths of a written report."""

    html: pathlib.Path
    junit: pathlib.Path
    markdown: pathlib.Path
    json: pathlib.Path


def write_report(
    comparison: Comparison,
    directory: Union[str, "os.PathLike[str]"],
    title: str = "AUC parity",
    provenance: Optional[Mapping[str, Any]] = None,
    inconclusive: str = "fail",
) -> ReportFiles:
    """Writes report.html, report.xml, report.md and report.json, replacing those that are there.

    Args:
        comparison: from `parity.compare`.
        directory: made if it is not there.
        title: the heading.
        provenance: of the compared data, as nested mappings, lists and plain values of strict JSON.
        inconclusive: "fail" or "warn": an INCONCLUSIVE verdict's status in report.xml.

    Returns:
        The paths of the files, a `ReportFiles`.

    Raises:
        UsageError: the directory cannot be written, or another `inconclusive`.
        MissingExtra: without matplotlib.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> files = parity.write_report(comparison, "report", title="TorchRec against TensorFlow")
        >>> [path.name for path in files]
        ['report.html', 'report.xml', 'report.md', 'report.json']
    """
    provenance = dict(provenance or {})
    folder = pathlib.Path(directory)
    files = ReportFiles(*(folder / f"report.{kind}" for kind in ("html", "xml", "md", "json")))
    texts = (
        page(
            f"{NAME[comparison.decision]} - {title}",
            report_section(comparison, title, provenance, index=True),
        ),
        junit(comparison, title, inconclusive),
        markdown(comparison, title, provenance),
        json.dumps(document(comparison, title, provenance), indent=2, allow_nan=False) + "\n",
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as moves:  # the last one entered is the first to be moved
            for file, text in reversed(tuple(zip(files, texts))):
                beside = moves.enter_context(replacing(file))
                beside.write_bytes(text.encode("utf-8", errors="replace"))  # for names not in text
    except OSError as error:
        raise UsageError(f"the report cannot be written to {folder}: {error.strerror}") from error
    return files


def page(title: str, sections: str, style: str = "") -> str:
    """A whole page of HTML with a plain title, and style besides `stylesheet()`."""
    return _PAGE.format(title=escaped(title), style=stylesheet() + style, sections=sections)


def stylesheet() -> str:
    """The CSS that `report_section` needs, scoped to its class, and a frame for the page.

    Returns:
        CSS.

    Examples:
        >>> ".parity" in parity.stylesheet()
        True
    """
    return pathlib.Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def notebook_html(comparison: Comparison) -> str:
    """The report for a notebook's cell; its styles touch nothing else there."""
    return f"<style>{stylesheet()}</style>{report_section(comparison, heading_level=3)}"


def report_section(
    comparison: Comparison,
    title: str = "AUC parity",
    provenance: Optional[Mapping[str, Any]] = None,
    heading_level: int = 1,
    index: bool = False,
) -> str:
    """The report as one <section> of HTML, to embed in a page that has `stylesheet()`.

    It is light, dark in a dark notebook, and as the reader's system is in a page whose body has the
    class "parity-page".

    Args:
        comparison, title, provenance: as for `write_report`.
        heading_level: of the title, 1 to 5; the parts below it are one level down.
        index: whether links to the parts follow the verdict; only for one report per page,
            as ids must not come twice.

    Returns:
        HTML.

    Examples:
        >>> comparison = parity.compare(labels, baseline, candidate)
        >>> html = f"<style>{parity.stylesheet()}</style>{parity.report_section(comparison)}"
        >>> html.count("<section")
        1
    """
    level = heading_level + 1
    blocks = [
        '<section class="parity">',
        f'<h{heading_level} class="title">{escaped(title)}</h{heading_level}>',
        verdict_section(comparison, provenance),
    ]
    parts = [(name, section(comparison)) for name, section in SECTIONS]
    parts.append(("Provenance", provenance_section(provenance or {})))
    parts = [(name, text) for name, text in parts if text]
    if index:
        blocks.append(index_of([name for name, _ in parts]))
    for name, text in parts:
        place = f' id="{anchor(name)}"' if index else ""
        blocks += [f'<h{level} class="part"{place}>{name}</h{level}>', text]
    return "\n".join([*blocks, "</section>"])
