"""Links to the report's sections."""

import re
from typing import Sequence


def index_of(titles: Sequence[str]) -> str:
    """A line of links, in the order of the sections."""
    links = (f'<a href="#{anchor(title)}">{title}</a>' for title in titles)
    return f'<nav class="index" aria-label="Sections">{" ".join(links)}</nav>'


def anchor(title: str) -> str:
    """The id of the section's heading: its words in small letters."""
    return "section-" + re.sub("[^a-z]+", "-", title.lower())
