"""Errors that say that a file is damaged, or out of reach."""

import contextlib
import zlib
from typing import Iterator

from semisync.common.errors import BadInput, SemisyncError
from semisync.common.sentences import words_of
from semisync.storage.remote import Unreachable, is_remote

_OF_DAMAGE = (OSError, EOFError, ValueError, OverflowError, zlib.error)


class Broken(BadInput):
    """A file whose contents cannot be read: cut short, corrupt. Such files may be skipped."""


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """Turns pyarrow's and the file system's exceptions into one sentence.

    Raises:
        Broken: contents that cannot be decoded.
        BadInput: a file that cannot be reached, which is no reason to go on without its rows.
    """
    try:
        yield
    except (SemisyncError, MemoryError):
        raise
    except FileNotFoundError as error:
        raise BadInput(f"{path} does not exist, or no longer does") from error
    except Exception as error:
        import pyarrow as pa  # when a file is read: the command line comes here for --help too

        # pyarrow's OSError on damage has no errno; one with it is the file system's.
        if (
            isinstance(error, (pa.ArrowException, *_OF_DAMAGE))
            and getattr(error, "errno", None) is None
        ):
            raise Broken(
                f"{path} cannot be read, it may be cut short or corrupt: {words_of(error)}"
            ) from error
        if isinstance(error, OSError) or is_remote(path):
            raise Unreachable(f"{path} cannot be reached: {words_of(error)}") from error
        raise
