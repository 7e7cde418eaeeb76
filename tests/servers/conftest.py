"""Acme's job and its plug-in."""

from tests.servers.acme import job, plugin  # noqa: F401 (fixtures)
