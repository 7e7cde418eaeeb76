"""What the site has besides docs/: other documents of the repository, and files behind links.

1. `on_files` adds them.
2. `on_page_markdown` turns links between files of the repository, by which the pages can be read
   without the site, into links between pages. A link to a file that the site lacks stays broken,
   and `mkdocs build --strict` fails.
"""

import pathlib
import posixpath
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = {
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
FILES = ("tests/jobs/scripts/*.py", "tests/jobs/scripts/*.change", "notebooks/*.ipynb")
_HOME = {uri: path for path, uri in PAGES.items()}
_PLACES = {**PAGES, "README.md": "index.md"}
_LINK = re.compile(r"\]\((?!\w+:|[#/])([^)\s#]+)")


def on_files(files, config):
    """Adds PAGES and FILES."""
    uris = dict(PAGES)
    for pattern in FILES:
        found = (str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
        uris.update((path, path) for path in found)
    for path, uri in uris.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Has every link name the place of its target in the site."""
    uri = page.file.src_uri
    folder = posixpath.dirname(_HOME.get(uri, "docs/" + uri))

    def within_site(link):
        target = posixpath.normpath(posixpath.join(folder, link.group(1)))
        place = _PLACES.get(target, re.sub("^docs/", "", target))
        return "](" + posixpath.relpath(place, posixpath.dirname(uri) or ".")

    return _LINK.sub(within_site, markdown)
