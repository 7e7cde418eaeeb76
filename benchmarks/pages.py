"""Puts the benchmarks' tables into the pages, between markers.

    python -m benchmarks.pages

    <!-- figures: input.one -->    the table `one` of benchmarks/results/input.json
    <!-- figures: input -->        how that file came about: command, day, machine, versions

Each ends with <!-- end -->; what stands between is replaced. A figure on a page that a benchmark
gives is thus never typed.
"""

import itertools
import pathlib
import re

from benchmarks import results

ROOT = pathlib.Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(<!-- figures: (\w+)(?:\.(\w+))? -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def pages():
    """The pages that may have figures."""
    folders = (sorted(ROOT.glob(name + "/**/*.md")) for name in ("benchmarks", "docs"))
    return [ROOT / "README.md", *itertools.chain(*folders)]


def filled(text):
    """A page with its figures as the results have them."""

    def block(found):
        start, name, table, _, end = found.groups()
        result = results.read(name)
        shown = results.markdown(result["tables"][table]) if table else results.caption(result)
        return f"{start}\n{shown}\n\n{end}"

    return _BLOCK.sub(block, text)


def main():
    """Brings the pages up to date."""
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"{page.relative_to(ROOT)} is brought up to date")


if __name__ == "__main__":
    main()
