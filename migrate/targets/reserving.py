"""Taking the room of a file on the disk before it is written.

Where the file system can do that (fallocate(2); ext4 for one), writing needs less processor time
afterwards and a full disk shows at once. Where it cannot, as ext2, glibc would write a zero into
every block instead, and the disk would be written twice: but not into a file that is open to append
or to write alone, for which posix_fallocate(3) promises EBADF.
"""

from __future__ import annotations

import errno
import os
from typing import BinaryIO

_CANNOT = (errno.EBADF, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def reserve(file: BinaryIO, size: int) -> bool:
    """Takes room for `size` bytes of `file`, of mode "ab"; returns whether its file system can.

    What was written before stays. Raises OSError where the disk is full.
    """
    if not size:
        return False
    try:
        os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise
    return True
