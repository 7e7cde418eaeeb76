"""How much was read so far, on a terminal's standard error alone."""

import contextlib
from typing import Callable, Iterator, Optional

from semisync.common.terminal import is_watched, live


@contextlib.contextmanager
def shown() -> Iterator[Optional[Callable[[str, int], None]]]:
    """The readers' callback with a file and its rows so far; None without a terminal, as in a log.

    The line is removed when all is read.
    """
    if not is_watched():
        yield None
        return
    try:
        yield lambda file, rows: live(f"{rows:,} rows, {file}")
    finally:
        live("")
