"""A download from one source or several that serve the same files.

1. The manifest comes from the first source that has the one with the right digest.
2. What an earlier download left is kept (`semisync.cluster.files.incoming`).
3. AT_ONCE chunks are on their way at a time, each from the source that has the fewest to send.
4. A source that sends wrong bytes is dropped at once, and named. One that fails is left alone for
   a while, twice as long each time, give or take a half; after FAILURES in a row it is dropped
   where it refuses this machine's signature.
5. The download fails when no source is left, and at its deadline; the error names the sources and
   what each did.
"""

import asyncio
import collections
import logging
import random
import time
from typing import Any, Callable, Deque, List, Optional

from semisync.cluster.files.client import Client, SourceFailed
from semisync.cluster.files.incoming import Incoming
from semisync.cluster.files.manifest import Chunk, Manifest, read_manifest
from semisync.common.errors import BadInput

AT_ONCE = 4  # chunks, all of which are in memory
FAILURES = 4
_LONGEST_REST = 10.0
_logger = logging.getLogger("semisync.cluster.files")


class _Source:
    """A source, as one download sees it."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.busy = 0  # chunks on their way
        self.dropped = False
        self.failure = ""
        self._failures = 0
        self._rests_until = 0.0

    @property
    def rest(self) -> float:
        """Seconds for which it is still left alone."""
        return self._rests_until - time.monotonic()

    def worked(self) -> None:
        """It sent a chunk."""
        self._failures = 0

    def failed(self, failure: SourceFailed) -> None:
        """It did not."""
        if failure.wait is not None:  # "not now" is not a fault
            self._rests_until = time.monotonic() + failure.wait * random.uniform(0.1, 0.5)
            return
        self.failure = str(failure)
        self._failures += 1
        seconds = min(_LONGEST_REST, 0.25 * 2**self._failures) * random.uniform(0.5, 1.5)
        self._rests_until = time.monotonic() + seconds
        if failure.refused and self._failures >= FAILURES:
            self.drop(self.failure)

    def drop(self, why: str) -> None:
        """It is asked no more."""
        self.dropped, self.failure = True, why


class Download:
    """One download; `run` once.

    Args:
        client: the `Client`.
        digest: of the manifest.
        sources: URLs.
        folder: where the files go.
        seconds: until it fails.
    """

    def __init__(
        self, client: Client, digest: str, sources: List[str], folder: Any, seconds: float
    ) -> None:
        self._client, self._digest, self._folder = client, digest, folder
        self._deadline = time.monotonic() + seconds
        self._sources = [_Source(url) for url in sources]
        self._incoming: Optional[Incoming] = None
        self._missing: Deque[Chunk] = collections.deque()

    async def run(self) -> None:
        """Downloads every file into its place.

        Raises:
            BadInput: see the module.
        """
        manifest = await self._in_time(self._manifest())
        self._incoming = await self._on_disk(Incoming, manifest, self._folder)
        try:
            await self._in_time(self._fetch_all(self._incoming))
        finally:
            self._incoming.close()

    async def _in_time(self, work: Any) -> Any:
        try:
            return await asyncio.wait_for(work, self._deadline - time.monotonic())
        except asyncio.TimeoutError:
            raise self._failure("at the deadline") from None

    async def _manifest(self) -> Manifest:
        while True:
            source = await self._free_source()
            try:
                data = await self._client.manifest(source.url, self._digest)
                return read_manifest(data, self._digest, source.url)
            except SourceFailed as failure:
                source.failed(failure)
            except BadInput as error:
                source.drop(str(error))
                _logger.warning("%s", error)

    async def _fetch_all(self, incoming: Incoming) -> None:
        self._missing.extend(incoming.missing)
        tasks = [asyncio.ensure_future(self._fetch(incoming)) for _ in range(AT_ONCE)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _fetch(self, incoming: Incoming) -> None:
        """Fetches chunks one after the other until none is left to ask for."""
        while self._missing:
            chunk = self._missing.popleft()
            source = await self._free_source()
            source.busy += 1
            try:
                data = await self._client.chunk(source.url, self._digest, chunk)
                if await self._on_disk(incoming.accept, chunk, data):
                    source.worked()
                    continue
                source.drop(
                    "it sent wrong bytes of {} (from byte {})".format(chunk.file.path, chunk.first)
                )
                _logger.warning("%s is asked no more: %s", source.url, source.failure)
            except SourceFailed as failure:
                source.failed(failure)
            finally:
                source.busy -= 1
            self._missing.appendleft(chunk)

    async def _free_source(self) -> _Source:
        """The least busy source that may be asked now, once there is one."""
        while True:
            alive = [source for source in self._sources if not source.dropped]
            if not alive:
                raise self._failure("and no source is left")
            free = [source for source in alive if source.rest <= 0]
            if free:
                return min(free, key=lambda source: (source.busy, random.random()))
            await asyncio.sleep(max(0.0, min(source.rest for source in alive)))

    def _failure(self, why: str) -> BadInput:
        what = "no manifest came"
        if self._incoming is not None:
            chunks = self._incoming.manifest.chunks()
            what = "{} of {} chunks are missing".format(len(self._incoming.missing), len(chunks))
        blame = "; ".join("{}: {}".format(s.url, s.failure) for s in self._sources if s.failure)
        return BadInput(
            "{}: {} {}: {}".format(self._folder, what, why, blame or "its sources are too slow")
        )

    async def _on_disk(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns that reads and writes files, in a thread of its own."""
        loop = asyncio.get_event_loop()
        try:
            return await loop.run_in_executor(None, function, *arguments)
        except OSError as error:  # the disk is full, perhaps
            raise BadInput(
                "{} cannot be written: {}".format(self._folder, error.strerror)
            ) from error
