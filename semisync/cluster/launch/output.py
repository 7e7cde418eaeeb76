"""The output of a launcher and its command: each line with its place in front."""

import contextlib
import os
import sys
import threading

from semisync.answers import is_apart
from semisync.common.terminal import shown

_lock = threading.Lock()


class Output:
    """Writes lines to the standard output and the standard error.

    Args:
        label: in front of each line; a function that returns it.
    """

    def __init__(self, label):
        self._label = label

    def pass_on(self, lines, is_error):
        """Lines of the command, a list of bytes.

        With --json all of them go to the standard error: the other is the document's. When nobody
        reads them any more, they are dropped: the command must not wait for that.
        """
        label = "[{}] ".format(shown(self._label())).encode()
        text = b"".join(label + line + b"\n" for line in lines)
        with _lock, contextlib.suppress(OSError):
            _write(2 if is_error or is_apart() else 1, text)

    def say(self, sentence):
        """A sentence of the launcher's own, to the standard error."""
        self.pass_on(["semisync launch: {}".format(shown(sentence)).encode()], True)


def _write(number, text):
    # Python's own buffers first, so that lines keep their order.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    while text:
        text = text[os.write(number, text) :]
