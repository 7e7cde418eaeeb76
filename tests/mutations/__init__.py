"""Small faults in the code, and whether the nearest tests find each.

    python -m tests.mutations    # all; --only ledger: those of a file; --list: what there is

It changes a copy of the checkout, one place at a time, and runs the named tests there, under the
Python that runs it. It ends with 1 if a fault survives. What no test could find, since nothing
differs, is not listed. Those of the wrapper are found under either TensorFlow's Python, those of
the converter and the judge under 3.11: `--only migrate`, `--only parity`.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """In a file, `before`, there once, becomes `after`; `tests` are arguments of pytest."""

    file: str
    before: str
    after: str
    tests: str


def at(file, *names):
    """The arguments of pytest for some of a file's tests; for all where none is named."""
    path = "tests/{}.py".format(file)
    return " ".join("{}::{}".format(path, name) for name in names) or path


def of(file, tests, *changes):
    return [Mutation(file, before, after, tests) for before, after in changes]
