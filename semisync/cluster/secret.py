"""A secret in a file that only its owner may read, such as ZooKeeper's password."""

import os
import stat
from typing import Any

from semisync.common.errors import UsageError

LONGEST = 4096  # bytes


def read_secret(path: Any) -> bytes:
    """The file's contents, without spaces and line ends around them.

    Raises:
        UsageError: it cannot be read, is longer than LONGEST, or others may read it too.
    """
    try:
        with open(path, "rb") as file:
            mode, secret = os.fstat(file.fileno()).st_mode, file.read(LONGEST + 1)
    except OSError as error:
        raise UsageError("{}: it cannot be read: {}".format(path, error.strerror)) from error
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError("{0}: others may read it; run: chmod 600 {0}".format(path))
    if len(secret) > LONGEST:
        raise UsageError("{}: it has more than {} bytes, and is no secret".format(path, LONGEST))
    return secret.strip()
