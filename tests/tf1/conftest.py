"""On which TensorFlow a test runs where there are both.

What depends on TensorFlow's version runs on 1.15 and on 2.x; but of 2.x, `make test` asks only the
files below, which have every kind of variable, optimizer and graph between them. The others
are marked `again`, and LONG=1 runs them on 2.x too.
"""

import pathlib
import sys

import pytest

import tests.support.no_deprecations  # noqa: F401

HERE = pathlib.Path(__file__).parent
ON_EACH = {
    "test_every_optimizer.py",
    "test_ledger.py",
    "test_mistakes.py",
    "test_one_process.py",
    "test_watchdog.py",
    "rewrite/test_across_tensorflows.py",
    "rewrite/test_by_hand.py",
    "rewrite/test_in_a_model.py",
    "rewrite/test_keras_and_contrib.py",
    "rewrite/test_meta_graph.py",
    "rewrite/test_tf_layers.py",
}


def pytest_collection_modifyitems(items):
    if sys.version_info < (3, 8):  # then TensorFlow is 1.15
        return
    for item in items:
        if HERE in item.path.parents and item.path.relative_to(HERE).as_posix() not in ON_EACH:
            item.add_marker(pytest.mark.again)
