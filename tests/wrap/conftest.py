"""The wrapped optimizer, on both TensorFlows."""

import pathlib

import tests.support.no_deprecations  # noqa: F401
from tests.support.again import mark_again

ON_EACH = {
    "test_every_optimizer.py",
    "test_ledger.py",
    "test_mistakes.py",
    "test_one_process.py",
    "test_watchdog.py",
}


def pytest_collection_modifyitems(items):
    mark_again(items, pathlib.Path(__file__).parent, ON_EACH)
