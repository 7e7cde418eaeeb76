"""Small faults in the code, and whether the nearest tests find each.

    python -m tests.mutations    # all; --only ledger: those of a file; --list: what there is

It changes a copy of the checkout, one place at a time, and runs the named tests there, under the
Python that runs it. It ends with 1 if a fault survives. What no test could find, since nothing
differs, is not listed.
"""

from typing import NamedTuple


class Mutation(NamedTuple):
    """In a file, `before`, there once, becomes `after`; `tests` are arguments of pytest."""

    file: str
    before: str
    after: str
    tests: str


def of(file, tests, *changes):
    return [Mutation(file, before, after, tests) for before, after in changes]
