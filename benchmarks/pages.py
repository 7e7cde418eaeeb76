"""Puts the benchmarks' tables into the pages, between markers.

    python -m benchmarks.pages [--check]

    <!-- figures: input.one -->    the table `one` of benchmarks/results/input.json
    <!-- figures: input -->        how that file came about: command, day, machine, versions

Each ends with <!-- end -->; what stands between is replaced. A figure on a page that a benchmark
gives is thus never typed. --check writes nothing, and ends with 1 where a page differs.
"""

import argparse
import itertools
import pathlib
import re
import sys

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
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    differ = False
    for page in pages():
        text = page.read_text(encoding="utf-8")
        new = filled(text)
        if new != text:
            differ = True
            print(
                f"{page.relative_to(ROOT)} {'differs' if args.check else 'is brought up to date'}"
            )
            if not args.check:
                page.write_text(new, encoding="utf-8")
    return int(differ and args.check)


if __name__ == "__main__":
    sys.exit(main())
