"""Where values came from, for messages, and the errors of files."""

from __future__ import annotations

import contextlib
import zlib
from typing import Any, Iterator, NamedTuple

import pyarrow as pa

from migrate.storage.remote import Unreachable, is_remote
from semisync.common.errors import BadInput, SemisyncError

_OF_DAMAGE = (pa.ArrowException, OSError, EOFError, ValueError, OverflowError, zlib.error)
_LONGEST = 300  # characters of somebody else's message


class Broken(BadInput):
    """A file whose contents cannot be read: cut short, corrupt. It is what may be skipped."""


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


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns what pyarrow and the file system raise into one sentence.

    Raises: Broken for contents that cannot be decoded; BadInput for a file that cannot be reached,
        which is no reason to go on without its rows.
    """
    try:
        yield
    except (SemisyncError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise BadInput(f"{path} does not exist, or does no more") from error
    except Exception as error:
        reason = " ".join(str(error).split())[:_LONGEST] or type(error).__name__
        if isinstance(error, _OF_DAMAGE) and getattr(error, "errno", None) is None:
            raise Broken(
                f"{path} cannot be read, it may be cut short or corrupt: {reason}"
            ) from error
        if isinstance(error, OSError) or is_remote(path):
            raise Unreachable(f"{path} cannot be reached: {reason}") from error
        raise
