"""At most so many bytes per second, all senders of a process together."""

import asyncio
import time
from typing import Optional


class Pace:
    """Lets bytes through in the order in which they ask; rate: bytes per second, None: no limit."""

    def __init__(self, rate: Optional[float]) -> None:
        self._rate = rate
        self._free_at = 0.0

    async def wait(self, size: int) -> None:
        """Returns when `size` more bytes may be sent."""
        if self._rate is None:
            return
        now = time.monotonic()
        start = max(now, self._free_at)
        self._free_at = start + size / self._rate
        if start > now:
            await asyncio.sleep(start - now)
