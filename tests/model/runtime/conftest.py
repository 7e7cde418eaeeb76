"""TensorFlow's own kernels, those of 1.15 where it is installed."""

import pytest

from tests.model.runtime.peer import tensorflow
from tests.support.require import forked_tensorflow


@pytest.fixture(scope="session")
def peer():
    """A process with TensorFlow: see peer.py."""
    with tensorflow(forked_tensorflow()) as asked:
        yield asked
