"""Checkpoints and models that other tests have written."""

from tests.migrate.conftest import (  # noqa: F401  fixtures
    checkpoints,
    corrupt_checkpoint,
    tf1_checkpoints,
    tf1_trained,
    tf2_checkpoints,
    tf2_trained,
    tf_reader,
    trained,
)
from tests.model.conftest import zoo  # noqa: F401  a fixture
