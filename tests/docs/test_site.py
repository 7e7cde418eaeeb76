"""The site builds without a warning, fetches nothing from elsewhere, and has every public name."""

import html.parser
import importlib
import re
import subprocess
import sys

import pytest

from tests.support.require import ROOT, environment

PACKAGES = ("semisync", "graph_rewrite", "migrate", "parity")
FETCHED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src"}

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=str(ROOT),
        env=environment(NO_MKDOCS_2_WARNING="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout
    return folder


class Page(html.parser.HTMLParser):
    """The anchors of a page, and what a browser fetches to show it."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.fetched = set(), []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.add(attributes.get("id"))
        if tag in FETCHED and attributes.get(FETCHED[tag]):
            self.fetched.append(attributes[FETCHED[tag]])


def test_a_browser_fetches_nothing_from_elsewhere(site):
    fetched = {url for path in site.rglob("*.html") for url in Page(path).fetched}
    for path in site.rglob("*.css"):
        fetched.update(re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')]+)", path.read_text()))
    assert len(fetched) > 5
    assert [url for url in fetched if re.match(r"(?:https?:)?//", url)] == []


def test_search_works_in_a_page_that_is_opened_as_a_file(site):
    """A browser then fetches neither the index nor a worker: both come as scripts."""
    fetched = Page(site / "convert" / "plan.html").fetched
    assert "../iframe-worker.js" in fetched
    assert (site / "iframe-worker.js").is_file()
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = {") and "Rare faults" in index


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name(package, site):
    anchors = Page(site / "api" / (package + ".html")).anchors
    expected = set(importlib.import_module(package).__all__)
    if package == "semisync":
        expected -= set(importlib.import_module("semisync").Fate.__members__)  # those of Fate
    assert {name for name in expected if f"{package}.{name}" not in anchors} == set()


def test_the_reference_has_the_names_of_lazy_packages_inside(site):
    anchors = Page(site / "api" / "semisync.html").anchors
    for name in importlib.import_module("semisync.cluster.status").__all__:
        assert f"semisync.cluster.status.{name}" in anchors


def test_files_beside_the_pages_are_part_of_the_site(site):
    assert (site / "tests" / "jobs" / "scripts" / "session_sync.py").is_file()
    assert "notebooks/wrap.ipynb" in (site / "start.html").read_text(encoding="utf-8")
    assert (site / "notebooks" / "wrap.ipynb").is_file()
