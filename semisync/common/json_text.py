"""JSON of somebody else's: whatever it holds, reading it ends in a value or a ValueError.

The functions of `json` end a text of nested lists with a RecursionError, and read a file of any
size and kind; ruff refuses them elsewhere.
"""

import json
import os
import stat

from semisync.common.files import LARGEST_TEXT


def loads(text):
    """The value of a JSON text, str or bytes in UTF-8; ValueError if it has none."""
    try:
        return json.loads(text)  # noqa: TID251
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def read(path):
    """The value of the JSON in the file at `path`.

    Raises:
        OSError: it cannot be read.
        ValueError: it is not JSON in UTF-8, not a regular file, or larger than any that was
            written.
    """
    with open(str(path), "rb", opener=_at_once) as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > LARGEST_TEXT:
            raise ValueError("it is no regular file of at most {:,} bytes".format(LARGEST_TEXT))
        return loads(file.read().decode("utf-8"))


def _at_once(path, flags):
    """Opens a pipe, too, without waiting for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)
