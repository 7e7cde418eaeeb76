"""Progress of a long piece of work: one line that changes on a terminal, plain lines
elsewhere.

    progress = Progress(sys.stdout)
    progress.show("scoring")            # in place of the line before
    progress.end("scored 1,000 rows")   # a line that stays

    with ByteProgress() as report:      # on stderr, only where the work takes long
        copy(..., report)               # calls report(bytes done, bytes in all)
"""

import sys
import time

from semisync.common.terminal import shown

_QUIET_SECONDS = 2.0  # work that is over by then shows nothing
_SECONDS_LIVE = 1.0  # between two lines on a terminal
_SECONDS_PLAIN = 10.0  # elsewhere, where every line stays
_CLEAR = "\r\033[K"


class Progress:
    """Writes to `stream`; a line is rewritten only on a terminal, for which `live` is True."""

    def __init__(self, stream):
        self._stream = stream
        self.live = stream.isatty()
        self._shown = ""

    def show(self, text):
        """Shows the current progress, in place of the line shown before."""
        if text == self._shown:
            return
        self._write(_CLEAR + shown(text) if self.live else shown(text) + "\n")
        self._shown = text

    def end(self, text):
        """Leaves a line for good."""
        self._write((_CLEAR if self.live else "") + shown(text) + "\n")
        self._shown = ""

    def note(self, text):
        """Leaves a remark."""
        self.end("note: " + text)

    def close(self):
        """Ends the progress line, so that the next output has its own."""
        if self._shown and self.live:
            self._write("\n")
        self._shown = ""

    def _write(self, text):
        self._stream.write(text)
        self._stream.flush()


class ByteProgress:
    """Shows how many bytes are done and how fast, at most once per second, if it takes long.

    Args:
        stream: stderr by default.
        clock: monotonic seconds.
    """

    def __init__(self, stream=None, clock=time.monotonic):
        self._progress = Progress(sys.stderr if stream is None else stream)
        self._clock = clock
        self._start = None
        self._next = 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._progress.close()

    def __call__(self, done, total):
        """Shows `done` of `total` bytes, where it is time to."""
        now = self._clock()
        if self._start is None:
            self._start, self._next = now, now + _QUIET_SECONDS
        if now < self._next:
            return
        self._next = now + (_SECONDS_LIVE if self._progress.live else _SECONDS_PLAIN)
        speed = done / (now - self._start) / 1e6
        self._progress.show(
            "{:,.0f} of {:,.0f} MB, {:,.0f} MB/s".format(done / 1e6, total / 1e6, speed)
        )
