"""Configurations for the HTTP server: many clients wait for one version with one watch.

A client that falls asleep between two requests misses nothing, since it asks for the version after
the last one that it saw.
"""

import asyncio
import contextlib
from typing import Any, Callable, Dict, Optional, Tuple

from semisync.cluster.files.configurations import Configurations
from semisync.common.errors import SemisyncError


class Feed:
    """Versions as soon as they are there; lives in one event loop.

    Args:
      configurations: the `Configurations`.
    """

    def __init__(self, configurations: Configurations) -> None:
        self._configurations = configurations
        self._told: Dict[Tuple[str, int], Any] = {}

    async def when_there(self, name: str, version: int, seconds: float) -> Optional[bytes]:
        """The JSON of a version; None where it is not there within `seconds`.

        Raises:
          SemisyncError: it is not kept any more, or the store does not answer.
        """
        loop, key = asyncio.get_event_loop(), (name, version)
        told = self._told.get(key)
        watch: Optional[Callable[[], Any]] = None
        if told is None:
            told = self._told[key] = asyncio.Event()

            def watch() -> None:
                with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile
                    loop.call_soon_threadsafe(self._tell, key)

        read = self._configurations.read
        try:
            found = await loop.run_in_executor(None, read, name, version, watch)
        except SemisyncError:
            self._tell(key)  # there may be no watch
            raise
        if found is None and seconds > 0:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(told.wait(), seconds)
            # A watch may be lost with its session: look all the same.
            found = await loop.run_in_executor(None, read, name, version)
        if found is not None:
            self._tell(key)
        return found

    def _tell(self, key: Tuple[str, int]) -> None:
        told = self._told.pop(key, None)
        if told is not None:
            told.set()
