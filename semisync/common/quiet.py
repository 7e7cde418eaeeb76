"""Importing TensorFlow without the log of its C++ libraries.

TensorFlow 2.x logs to stderr while it is loaded, whatever TF_CPP_MIN_LOG_LEVEL says, and a sentence
of ours would stand below that.
"""

import contextlib
import os
import shutil
import sys
import tempfile

_LEVEL = "TF_CPP_MIN_LOG_LEVEL"


@contextlib.contextmanager
def quiet_tensorflow():
    """In the block nothing is written to file descriptor 2, and TensorFlow logs no warnings later.

    Where the block fails, what it wrote is written after all. Where the user has set
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
