"""Where values came from, for messages."""

from __future__ import annotations

from typing import Any, NamedTuple


class Place(NamedTuple):
    """A block of a file; `first` is the number of its first row in the file, from 0."""

    file: str
    first: int = 0

    def column(self, name: str) -> str:
        """Names a column."""
        return f"{self.file}: column {name!r}"

    def row(self, name: str, row: Any) -> str:
        """Names one value, by its data row from 1."""
        return f"{self.column(name)} in row {self.first + int(row) + 1}"
