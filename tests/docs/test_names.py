"""Every file, link and dotted name that a page mentions exists."""

import re

import pytest

from tests.support.programs import output_of
from tests.support.require import ROOT

_TOP = "benchmarks|docs|graph_rewrite|migrate|parity|semisync|tests"
_PATH = re.compile(r"(?<![\w./-])(?:{})/[\w./-]*(?:\.py|\.md|/)(?!\w)".format(_TOP))
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
_NAME = re.compile(r"(?<![\w./\"-])(?:{})(?:\.(?!md\b)[A-Za-z_]\w*)+(?![\w/])".format(_TOP))
_PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")])
_RESOLVE = """
import pkgutil, sys

for name in sys.argv[1:]:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError) as error:
        print(name, error)
"""


def _text(page):
    """A page without comments; of the changelog what is new, as older entries name what is gone."""
    text = re.sub("<!--.*?-->", "", page.read_text(encoding="utf-8"))
    return text.partition("### Added")[2].partition("\n##")[0] if "CHANGELOG" in page.name else text


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_files_that_the_page_names_exist(page):
    paths = [ROOT / path for path in _PATH.findall(_text(page))]
    paths += [page.parent / path for path in _LINK.findall(_text(page))]
    assert [str(path.relative_to(ROOT)) for path in paths if not path.exists()] == []


def test_the_dotted_names_on_the_pages_resolve(interpreters):
    names = sorted({name for page in _PAGES for name in _NAME.findall(_text(page))})
    assert output_of(interpreters / "python", "-W", "ignore", "-c", _RESOLVE, *names) == ""
