"""A download from several sources at once, while others download from this node.

1. The manifest comes from the first root that has the one with the right digest.
2. What an earlier download left is kept (`semisync.cluster.files.holding`).
3. Every source is asked again and again what it has, and which other sources there are; this node
   tells them its own URL, where it serves on. It keeps up to NEIGHBOURS of them, and changes one
   now and then, so that no part of the swarm stays without the others.
4. Chunks are asked for as `semisync.cluster.files.choosing` says, and checked one by one.
5. A source that sends wrong bytes is dropped at once, and named. One that fails is left alone for
   a while, twice as long each time, give or take a half; after FAILURES in a row it is dropped, a
   root only where it refuses this node's signature or has other files.
6. The download fails when no root is left and no other source has what is missing, and at its
   deadline; the error names the sources and what each did.

A root is a source that the caller named. Several roots may serve the same files.
"""

import asyncio
import contextlib
import logging
import random
import time
from typing import Any, Callable, Dict, List, Optional, Set

from semisync.cluster.files.choosing import AT_ONCE, OF_A_FOLLOWER, OF_A_ROOT, choose
from semisync.cluster.files.client import Client, SourceFailed
from semisync.cluster.files.holding import Incoming
from semisync.cluster.files.manifest import Chunk, Manifest, read_manifest
from semisync.common.errors import BadInput

NEIGHBOURS = 8
FAILURES = 4
_POLL = 0.15
_CHANGE_SECONDS = 10.0
_LONGEST_REST = 10.0
_logger = logging.getLogger("semisync.cluster.files")


class Source:
    """A source, as one download sees it: see `semisync.cluster.files.choosing`."""

    def __init__(self, url: str, is_root: bool, clock: Callable[[], float]) -> None:
        self.url, self.is_root, self._clock = url, is_root, clock
        self.have = 0
        self.busy = 0
        self.dropped = False
        self.failure = ""
        self._failures = 0
        self._rests_until = 0.0

    @property
    def free(self) -> bool:
        """Whether it may be asked for a chunk now."""
        most = OF_A_ROOT if self.is_root else OF_A_FOLLOWER
        return not self.dropped and self.busy < most and self.rest <= 0

    @property
    def rest(self) -> float:
        """Seconds for which it is still left alone."""
        return self._rests_until - self._clock()

    def worked(self) -> None:
        """It sent a chunk; that it answers alone is not enough, or it could put off for ever."""
        self._failures = 0

    def failed(self, failure: SourceFailed) -> None:
        """It did not."""
        if failure.wait is not None:  # "not now" is no fault
            self._rests_until = self._clock() + failure.wait * random.uniform(0.1, 0.5)
            return
        self.failure = str(failure)
        self._failures += 1
        self.have = 0
        seconds = min(_LONGEST_REST, 0.25 * 2**self._failures) * random.uniform(0.5, 1.5)
        self._rests_until = self._clock() + seconds
        if self._failures >= FAILURES and (failure.refused or not self.is_root):
            self.drop(self.failure)

    def drop(self, why: str) -> None:
        """It is asked no more."""
        self.dropped, self.failure, self.have = True, why, 0


class Download:
    """One download; `run` once.

    Args:
      client: the `Client`.
      digest: of the manifest.
      roots: URLs.
      folder: where the files go.
      announce: whether this node serves on.
      own: this node's URL.
      deadline: a monotonic time.
      begun: called with the `Incoming` once its manifest is there; returns a function that names
        the sources that ask this node.
    """

    def __init__(
        self,
        client: Client,
        digest: str,
        roots: List[str],
        folder: Any,
        announce: bool,
        own: str,
        deadline: float,
        begun: Callable[[Incoming], Callable[[], List[str]]],
    ) -> None:
        self._client, self._digest, self._folder = client, digest, folder
        self._announce, self._own, self._deadline = announce, own, deadline
        self._begun = begun
        self._clock = time.monotonic
        self._dice = random.Random()
        self._sources: Dict[str, Source] = {
            url: Source(url, True, self._clock) for url in roots if url != own
        }
        self._known: Set[str] = set()  # others, not asked so far
        self._changed = asyncio.Event()
        self._asked = 0  # chunks on their way, as bits
        self._tasks: Set[Any] = set()
        self._error: Optional[BaseException] = None
        self._holding: Any = None
        self._askers: Callable[[], List[str]] = list

    async def run(self) -> None:
        """Returns when every file is in its place.

        Raises:
          BadInput: see the module.
        """
        try:
            left = self._deadline - self._clock()
            manifest = await asyncio.wait_for(self._manifest(), left)
        except asyncio.TimeoutError:
            raise self._failure("no manifest came at the deadline") from None
        self._holding = await self._on_disk(Incoming, manifest, self._folder)
        self._askers = self._begun(self._holding)
        try:
            for source in list(self._sources.values()):
                self._start(self._watch(source))
            self._start(self._change_neighbours())
            while self._missing or self._asked:  # what was asked for may be on its way to disk
                self._ask()
                await self._wait()
        finally:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._holding.close()

    @property
    def _missing(self) -> Any:
        return self._holding.all & ~self._holding.have

    async def _manifest(self) -> Manifest:
        while True:
            for source in [s for s in self._sources.values() if not s.dropped and s.rest <= 0]:
                try:
                    data = await self._client.manifest(source.url, self._digest)
                    return read_manifest(data, self._digest, source.url)
                except SourceFailed as failure:
                    source.failed(failure)
                except BadInput as error:
                    source.drop(str(error))
                    _logger.warning("%s", error)
            if all(source.dropped for source in self._sources.values()):
                raise self._failure("no manifest came and no source is left")
            await asyncio.sleep(0.1)

    def _start(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: Any) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._error = task.exception()
        self._changed.set()

    async def _wait(self) -> None:
        """Until something has changed, or for a moment."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), 0.2)
        self._changed.clear()
        if self._error is not None:
            raise self._error
        if self._missing:
            self._check_hope()

    def _check_hope(self) -> None:
        """Raises BadInput at the deadline, and where no source is left."""
        alive = [s for s in self._sources.values() if not s.dropped]
        hope = self._asked or any(s.is_root or s.have for s in alive)
        late = self._clock() >= self._deadline
        if hope and not late:
            return
        missing, total = bin(self._missing).count("1"), len(self._holding.chunks)
        why = "at the deadline" if late else "and no source is left"
        raise self._failure("{} of {} chunks are missing {}".format(missing, total, why))

    def _failure(self, what: str) -> BadInput:
        blamed = [s for s in self._sources.values() if s.failure]
        blame = "; ".join("{}: {}".format(s.url, s.failure) for s in blamed)
        return BadInput(
            "{}: {}: {}".format(self._folder, what, blame or "its sources are too slow")
        )

    async def _watch(self, source: Source) -> None:
        """Asks a source what it has until the download ends or the source is dropped."""
        while not source.dropped:
            again = 0.1
            try:
                state = await self._client.state(source.url, self._digest, self._announce)
                source.have = state.have & self._holding.all
                again = state.again * self._dice.uniform(0.75, 1.25)
                self._known.update(state.sources)
                self._fill_neighbours()
                self._changed.set()
            except SourceFailed as failure:
                source.failed(failure)
                again = max(again, source.rest)
            while again > 0 and not source.dropped:
                await asyncio.sleep(min(again, _POLL))
                again -= _POLL if self._needs_more() else 0.1 * _POLL

    def _needs_more(self) -> bool:
        """Whether what is known of the sources will not keep this node busy for long."""
        wanted = self._missing & ~self._asked
        known = 0
        for one in self._sources.values():
            known |= one.have
        return bin(wanted & known).count("1") < 2 * AT_ONCE

    def _fill_neighbours(self) -> None:
        """Begins to ask other sources what they have, until there are NEIGHBOURS."""
        self._known.update(self._askers())
        self._known.difference_update(self._sources, [self._own])
        active = sum(not (s.is_root or s.dropped) for s in self._sources.values())
        while active < NEIGHBOURS and self._known:
            url = self._dice.choice(sorted(self._known))
            self._known.discard(url)
            self._sources[url] = Source(url, False, self._clock)
            self._start(self._watch(self._sources[url]))
            active += 1

    async def _change_neighbours(self) -> None:
        while True:
            await asyncio.sleep(_CHANGE_SECONDS * self._dice.uniform(0.75, 1.25))
            idle = [s for s in self._sources.values() if not (s.is_root or s.dropped or s.busy)]
            if idle and self._known:
                leaving = self._dice.choice(idle)
                leaving.dropped, leaving.have = True, 0
                del self._sources[leaving.url]
                self._fill_neighbours()

    def _ask(self) -> None:
        """Asks for as many chunks as may be on their way."""
        while bin(self._asked).count("1") < AT_ONCE:
            found = choose(self._missing & ~self._asked, self._sources.values(), self._dice)
            if found is None:
                return
            source, number = found
            source.busy += 1
            self._asked |= 1 << number
            self._start(self._fetch(source, self._holding.chunks[number]))

    async def _fetch(self, source: Source, chunk: Chunk) -> None:
        try:
            data = await self._client.chunk(source.url, self._digest, chunk, self._announce)
            if not await self._on_disk(self._holding.accept, chunk, data):
                source.drop(
                    "it sent wrong bytes of {} (from byte {})".format(chunk.file.path, chunk.first)
                )
                _logger.warning("%s is asked no more: %s", source.url, source.failure)
                return
            source.worked()
        except SourceFailed as failure:
            source.have &= ~(1 << chunk.number)  # until it is asked again what it has
            source.failed(failure)
        finally:
            source.busy -= 1
            self._asked &= ~(1 << chunk.number)

    async def _on_disk(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function returns that reads and writes files, in a thread of its own."""
        loop = asyncio.get_event_loop()
        try:
            return await loop.run_in_executor(None, function, *arguments)
        except OSError as error:  # the disk is full, perhaps
            raise BadInput(
                "{} cannot be written: {}".format(self._folder, error.strerror)
            ) from error
