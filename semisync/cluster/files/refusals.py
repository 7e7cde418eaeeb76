"""A server's refusals, and its log: a line for each, without anything secret.

A line has the client's address, the method, the path and the reason; never a header. Text that a
client chose is cut and escaped, so that it cannot forge a line. In a flood, lines beyond PER_MINUTE
are counted, and the count is logged. "Not now" (503) is part of every download and is not logged.
"""

import logging
import time
from typing import Callable

PER_MINUTE = 120
_logger = logging.getLogger("semisync.cluster.files")


class Refused(Exception):
    """A request that is not served.

    Attributes:
        status: of the HTTP answer.
        reason: a phrase, for the client and the log.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        return (self.reason + "\n").encode("utf-8")


class RefusalLog:
    """Logs refusals as warnings of the logger "semisync.cluster.files".

    Args:
        clock: seconds that only go up.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._minute = clock()
        self._lines = self._unsaid = 0

    def add(self, address: str, method: str, path: str, status: int, reason: str) -> None:
        """Logs one refusal, or counts it; status 0: a connection that was cut; 503 is left out."""
        if status == 503:
            return
        now = self._clock()
        if now - self._minute >= 60:
            self._say_the_rest()
            self._minute, self._lines = now, 0
        if self._lines >= PER_MINUTE:
            self._unsaid += 1
            return
        self._lines += 1
        _logger.warning(
            "refused %s from %s %s: %s", shown(method, 16), address, shown(path, 120), reason
        )

    def close(self) -> None:
        """Logs the refusals that are not logged yet."""
        self._say_the_rest()

    def _say_the_rest(self) -> None:
        if self._unsaid:
            _logger.warning("refused %d more requests within a minute", self._unsaid)
            self._unsaid = 0


def shown(text: str, most: int) -> str:
    """At most `most` characters of `text`, in quotes, in ASCII, without control characters."""
    return ascii(text if len(text) <= most else text[:most] + "...")
