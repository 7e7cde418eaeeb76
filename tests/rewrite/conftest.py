"""Rewritten graphs, on both TensorFlows."""

import pathlib

import tests.support.no_deprecations  # noqa: F401
from tests.support.again import mark_again

ON_EACH = {
    "test_across_tensorflows.py",
    "test_by_hand.py",
    "test_in_a_model.py",
    "test_keras_and_contrib.py",
    "test_tf_layers.py",
}


def pytest_collection_modifyitems(items):
    mark_again(items, pathlib.Path(__file__).parent, ON_EACH)
