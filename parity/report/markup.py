"""Pieces of HTML that the sections are made of; every text that is passed in is escaped here."""

import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from parity.formatting import clipped
from semisync.common.markup import in_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LONGEST = 120  # letters of a name that the page shows; report.json has the whole of it
_MOST = 20  # items of a list that `nested` shows


def escaped(text: str) -> str:
    """The text, not longer than LONGEST."""
    return in_html(clipped(text, LONGEST))


def paragraphs(*sentences: str) -> str:
    """A <p> for each sentence."""
    return "\n".join(f"<p>{in_html(sentence)}</p>" for sentence in sentences)


def table(body: Iterable[Sequence[str]], head: Sequence[str] = ()) -> str:
    """A table whose first column names the rows; it scrolls alone where it is too wide."""
    lines = ['<div class="wide"><table>']
    if head:
        cells = "".join(f'<th scope="col">{in_html(text)}</th>' for text in head)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for name, *cells_of_row in body:
        data = "".join(f"<td>{escaped(text)}</td>" for text in cells_of_row)
        lines.append(f'<tr><th scope="row">{escaped(name)}</th>{data}</tr>')
    return "\n".join([*lines, "</tbody></table></div>"])


def drawing(caption: str, figure: "Figure", name: str, description: str) -> str:
    """A figure of `parity.plot` with its caption; `description` is for those who do not see it."""
    from parity.plot.svg import inline  # not before there is a figure, as it needs matplotlib

    return (
        f"<figure><figcaption>{in_html(caption)}</figcaption>\n"
        f"{inline(figure, name, clipped(caption, LONGEST), description)}</figure>"
    )


def index_of(titles: Sequence[str]) -> str:
    """A line of links to the sections, in their order."""
    links = (f'<a href="#{anchor(title)}">{title}</a>' for title in titles)
    return f'<nav class="index" aria-label="Sections">{" ".join(links)}</nav>'


def anchor(title: str) -> str:
    """The id of a section's heading: its words in small letters."""
    return "section-" + re.sub("[^a-z]+", "-", title.lower())


def side_by_side(*blocks: str) -> str:
    """The blocks in columns, where the screen is wide enough."""
    return "\n".join(['<div class="pair">', *blocks, "</div>"])


def nested(value: Any) -> str:
    """Mappings as tables, lists item after item, anything else as text."""
    if isinstance(value, Mapping):
        rows = "".join(
            f'<tr><th scope="row">{escaped(str(key))}</th><td class="text">{nested(item)}</td></tr>'
            for key, item in value.items()
        )
        return f"<table><tbody>{rows}</tbody></table>"
    if isinstance(value, (list, tuple)):
        shown = [f"<div>{nested(item)}</div>" for item in value[:_MOST]]
        if len(value) > _MOST:
            shown.append(f"<div>and {len(value) - _MOST:,} more, in report.json</div>")
        return "\n".join(shown)
    return escaped(f"{value:,}" if type(value) is int else str(value))
