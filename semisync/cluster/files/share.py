"""What a node gives of one manifest, and to whom it gives what."""

import random
import time
from typing import Any, Callable, Dict, List, Optional
from urllib.parse import quote

from semisync.cluster.files.holding import Holding
from semisync.cluster.files.leases import SILENCE, Leases
from semisync.cluster.files.manifest import File

_SAMPLE = 16  # sources that an answer names
_MOST_SOURCES = 20000
_CROWD = 100
_STATES_PER_SECOND = 200.0  # that followers may ask of one source, all together
SOONEST = 0.3  # seconds between two questions of a follower


class Share:
    """A holding that is served.

    Args:
      holding: the `Holding`.
      is_root: whether it has the files from elsewhere than the followers: it leases its chunks.
      clock: seconds that only go up.

    Attributes:
      digest: of the manifest.
      manifest: its bytes.
      paths: {the path of a request: File}; nothing else is served.
      sent: bytes of files that were sent.
    """

    def __init__(
        self, holding: Holding, is_root: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.holding = holding
        self.manifest = holding.manifest.to_bytes()
        self.digest = holding.manifest.digest
        self.paths: Dict[str, File] = {
            file_path(self.digest, file.path): file for file in holding.manifest.files
        }
        self.sent = 0
        self._leases = Leases(clock) if is_root else None
        self._clock = clock
        self._sources: Dict[str, float] = {}  # URL: when it was last heard of

    def hear(self, source: str) -> None:
        """Notes that a follower, by its URL, is a source too."""
        if source and (source in self._sources or len(self._sources) < _MOST_SOURCES):
            self._sources[source] = self._clock()
            if self._leases is not None:
                self._leases.hear(source)

    def sources(self) -> List[str]:
        """The sources that were heard of within SILENCE."""
        oldest = self._clock() - SILENCE
        self._sources = {url: at for url, at in self._sources.items() if at >= oldest}
        return list(self._sources)

    @property
    def is_crowded(self) -> bool:
        """Whether there are so many followers that none may keep its connection."""
        return len(self._sources) > _CROWD

    def state(self, follower: str) -> Dict[str, Any]:
        """What the node tells a follower: its chunks, some other sources, when to ask again."""
        have = self.holding.have
        if follower and self._leases is not None:
            have &= ~self._leases.on_lease(follower)
        sources = self.sources()
        others = random.sample(sources, min(len(sources), _SAMPLE))
        return {
            "again": max(SOONEST, len(sources) / _STATES_PER_SECOND),
            "have": "{:x}".format(have),
            "sources": [url for url in others if url != follower],
        }

    def grants(self, file: File, first: int, last: int, follower: str) -> Optional[str]:
        """Why bytes `first` to `last` of a file are not given now; None where they are."""
        chunks = self.holding.covering(file, first, last)
        if not self.holding.has(chunks):
            return "these bytes are not here yet"
        if follower and self._leases is not None:
            for chunk in chunks:
                if not self._leases.grant(chunk.number, follower):
                    return "another follower has them: ask the other sources"
        return None


def file_path(digest: str, path: str) -> str:
    """The path of a request for a file of a manifest."""
    return "/{}/files/{}".format(digest, quote(path, safe="/"))


def manifest_path(digest: str) -> str:
    """The path of a request for a manifest."""
    return "/{}/manifest".format(digest)


def state_path(digest: str) -> str:
    """The path of a request for what a source has of a manifest."""
    return "/{}/state".format(digest)
