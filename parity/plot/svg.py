"""matplotlib's figures as SVG: in a notebook by themselves, in the report as part of its page.

For the page: text stays text in the page's own font, the colours of `parity.plot.PALETTE` become
the page's CSS variables, ids are the figure's own, and parts for SVG files alone are left out.
The same figure gives the same bytes.
"""

import io
import re
import warnings
from typing import Any, Dict

import matplotlib
from matplotlib.figure import Figure

from parity.plot.style import PALETTE
from semisync.common.markup import in_html

_VARIABLES = {colour: f"var(--{name})" for name, colour in PALETTE.items()}
_SETTINGS: Dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "parity"}


class Picture(Figure):
    """A figure that a notebook shows without pyplot."""

    def _repr_svg_(self) -> str:
        return document(self)


def document(figure: Figure) -> str:
    """An SVG file's text."""
    text = io.StringIO()
    with matplotlib.rc_context(_SETTINGS), warnings.catch_warnings():
        # Letters are measured in a font that may lack them, and drawn in the reader's.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def inline(figure: Figure, name: str, title: str, description: str) -> str:
    """An <svg> element for a page that defines the variables.

    Args:
        name: begins the ids, so that figures of one page do not share them; letters, digits and -.
        title, description: its content, for screen readers.
    """
    text = document(figure)
    box = re.search(r'viewBox="([^"]*)"', text)
    body = text[text.index("<g id=") : text.rindex("</svg>")]
    body = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = re.sub(r'( id="|"#|url\(#)', rf"\1{name}-", body)
    body = body.replace("xlink:href", "href")
    body = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", body)  # the page's own font
    body = re.sub(r"<[^>]*>", _shorter, body)
    body = re.sub(r">\s+<", "><", body)
    for colour, variable in _VARIABLES.items():
        body = body.replace(colour, variable)
    return (
        f'<svg viewBox="{box.group(1) if box else ""}" role="img">'
        f"<title>{in_html(title)}</title><desc>{in_html(description)}</desc>{body}</svg>"
    )


def _shorter(tag: "re.Match[str]") -> str:
    """A tag without line breaks, its numbers cut to two decimals; text between tags stays."""
    return re.sub(r"(\d+\.\d\d)\d+", r"\1", re.sub(r"\s+", " ", tag.group()))
