"""On which TensorFlow a test runs where there are both.

What depends on TensorFlow's version runs on 1.15 and on 2.x; but of 2.x, `make test` asks only the
files that a folder names, which have every kind of variable, optimizer and graph between them. The
others are marked `again`, and LONG=1 runs them on 2.x too.
"""

import sys

import pytest


def mark_again(items, folder, on_each):
    """Marks the tests of a folder, a pathlib.Path, but for those in the files `on_each`."""
    if sys.version_info < (3, 8):  # then TensorFlow is 1.15
        return
    for item in items:
        if item.path.parent == folder and item.path.name not in on_each:
            item.add_marker(pytest.mark.again)
