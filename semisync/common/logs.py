"""Libraries' and processes' stderr: held back while it is noise, read when it matters.

TensorFlow 2.x logs to stderr while it is loaded, whatever TF_CPP_MIN_LOG_LEVEL says, and would bury
the one sentence of an error.
"""

import contextlib
import os
import re
import shutil
import sys
import tempfile

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_TAIL = 1 << 16  # bytes of a log


@contextlib.contextmanager
def suppress_tensorflow_log():
    """In the block nothing is written to file descriptor 2, and TensorFlow logs no warnings later.

    Where the block fails, its output is written after all. Where the user has set
    TF_CPP_MIN_LOG_LEVEL, nothing is held back.
    """
    if _LEVEL in os.environ:
        yield
        return
    os.environ[_LEVEL] = "3"
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except BaseException:
            log.seek(0)
            with open(stderr, "wb", closefd=False) as shown:
                shutil.copyfileobj(log, shown)
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def last_error(log):
    """The last line of a binary file that names an error, else its last line.

    TensorFlow prints more after the error.
    """
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL))
    lines = log.read().decode("utf8", "replace").strip().splitlines()
    errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    return (errors or lines or ["it said nothing"])[-1]
