"""Conversions of the zoo, made once."""

import sys

import pytest

from tests.behaviour.conversion import Conversion
from tests.model.conftest import zoo, zoo_tf2  # noqa: F401 (fixtures)
from tests.support.require import forked_tensorflow, tf1_python


@pytest.fixture(scope="session")
def converted(request, tmp_path_factory):
    """A function: the `Conversion` of a model of "zoo" (TensorFlow 1.15) or "zoo_tf2"."""
    made = {}

    def get(which, name):
        if (which, name) not in made:
            python = forked_tensorflow(tf1_python() if which == "zoo" else sys.executable)
            folder = tmp_path_factory.mktemp(name)
            made[which, name] = Conversion(request.getfixturevalue(which), name, folder, python)
        return made[which, name]

    return get


@pytest.fixture
def wide_and_deep(converted):
    """Text, tables, a fed phase and a fed keep_prob; by TensorFlow 1.15."""
    return converted("zoo", "wide_and_deep")
