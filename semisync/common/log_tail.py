"""What a process that failed said last."""

import os
import re

_TAIL = 1 << 16  # bytes of the log


def last_words(log):
    """The last line of a binary file that names an error, for TensorFlow prints more after it."""
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    lines = log.read().decode("utf8", "replace").strip().splitlines()
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (errors or lines or ["it said nothing"])[-1]
