"""The jobs over TFRA's hash tables."""

from tests.model.by_id.jobs import by_id  # noqa: F401 (a fixture)
