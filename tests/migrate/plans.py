"""Edits of a plan."""

from dataclasses import fields
from typing import Any

from migrate.planning.plan import IdMapping, Table

_OF_IDS = {field.name for field in fields(IdMapping)}


def edit(table: Table, **changes: Any) -> None:
    """Sets fields of a table, or of how its ids find their rows."""
    for name, value in changes.items():
        setattr(table.ids if name in _OF_IDS else table, name, value)
