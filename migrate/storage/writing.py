"""Writing bytes to where they belong in a file."""

from __future__ import annotations

import os


def write_at(file: int, offset: int, data: memoryview) -> None:
    """Writes all of `data`, bytes, from byte `offset` of the open `file` on."""
    done = 0
    while done < len(data):
        done += os.pwrite(file, data[done:], offset + done)
