"""A node: publishes folders, downloads what others published, and serves on what it has.

    key = files.read_key("job.key")

    with files.Node(key, host="10.0.0.1") as origin:              # where the files are
        digest = origin.publish("vocabularies", job="ctr-7")
        ...                                                       # tell others digest, origin.url

    with files.Node(key, host="10.0.0.2") as node:                # everywhere else
        node.download(digest, [url], into="vocabularies", deadline=600)
        ...                                                       # others may download from it

The event loop runs in a thread of its own, so that a job of plain functions, such as a TensorFlow
script, can use it.
"""

import asyncio
import contextlib
import ipaddress
import json
import time
from typing import Any, Dict, List, Optional

from semisync.cluster.files.client import Client, SourceFailed
from semisync.cluster.files.configurations import Configuration, Configurations
from semisync.cluster.files.connections import Limits, listen
from semisync.cluster.files.download import Download
from semisync.cluster.files.feed import Feed
from semisync.cluster.files.holding import Holding, Incoming, Whole
from semisync.cluster.files.loop import LoopThread
from semisync.cluster.files.manifest import is_digest, make_manifest
from semisync.cluster.files.pace import Pace
from semisync.cluster.files.refusals import RefusalLog
from semisync.cluster.files.server import LONGEST_WAIT, Server, authority_of
from semisync.cluster.files.share import Share
from semisync.cluster.files.signing import Verifier
from semisync.cluster.files.tls import Tls
from semisync.common.errors import BadInput, UsageError

_HEARD_EVERY = 4.0  # seconds: a root takes a follower for dead after SILENCE


class Node:
    """Serves and downloads; use it as a context manager.

    Args:
      key: the job's, see `semisync.cluster.files.read_key`.
      host: the name or address by which others reach this machine, and to which it listens.
      port: 0 lets the kernel pick one.
      bind: the address to listen to, where it is not `host`, such as "0.0.0.0" in a container.
      tls: a `Tls`, or None for plain HTTP, where nobody else reads the network.
      upload_limit: bytes per second that leave this node, None for no limit.
      configurations: the `Configurations` to serve, for machines that do not reach ZooKeeper.

    Attributes:
      url: http://host:port, or https; what others pass as a source.

    Raises:
      UsageError: it cannot listen there, or others could not reach it by `host`.
    """

    def __init__(
        self,
        key: bytes,
        host: str = "127.0.0.1",
        port: int = 0,
        bind: Optional[str] = None,
        tls: Optional[Tls] = None,
        upload_limit: Optional[float] = None,
        configurations: Optional[Configurations] = None,
    ) -> None:
        self._log = RefusalLog()
        self._key, self._tls = key, tls
        feed = Feed(configurations) if configurations is not None else None
        self._server = Server(Verifier(key), self._log, Pace(upload_limit), feed)
        self._host, self._bind, self._port = host, bind or host, port
        self._loop = LoopThread("semisync-files")
        self._followed: Dict[str, Any] = {}
        self.url = ""
        try:
            self._loop.call(self._open())
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def refusals(self) -> Dict[int, int]:
        """How many requests were refused, by HTTP status; 0: connections that were cut."""
        return dict(self._log.count)

    def publish(self, folder: Any, job: str) -> str:
        """Serves every file below `folder`; returns the digest of its manifest.

        The files must stay as they are while they are served.

        Args:
          folder: str or path.
          job: the job's id.

        Raises:
          UsageError, BadInput: see `semisync.cluster.files.make_manifest`.
        """
        manifest = make_manifest(folder, job)
        self._loop.loop.call_soon_threadsafe(self._share, Whole(manifest, folder), True)
        return manifest.digest

    def download(
        self,
        digest: str,
        sources: List[str],
        into: Any,
        deadline: float,
        serve_on: bool = True,
    ) -> None:
        """Returns once every file of the manifest lies in `into`, checked and flushed to disk.

        Args:
          digest: of the manifest, from a place that you trust.
          sources: URLs of nodes that publish it.
          into: a folder, made where it is not there. An older file of the same path is replaced.
          deadline: seconds.
          serve_on: whether others may download from this node, now and until it is closed. False
            where they cannot reach it: else they would wait for what it was given.

        Raises:
          UsageError: the digest or a source is none; another process downloads the same there.
          BadInput: what is missing, and what each source did.
        """
        if not is_digest(digest):
            raise UsageError("{!r} is no digest: 64 hexadecimal digits".format(digest))
        scheme = self.url.partition("://")[0] + "://"
        for url in sources:
            if authority_of(url) is None or not url.startswith(scheme):
                raise UsageError("{!r} is no source: {}HOST:PORT was expected".format(url, scheme))
        if not sources:
            raise UsageError("no source: name one that publishes the files")
        if serve_on and _is_loopback(self.url) and not all(map(_is_loopback, sources)):
            raise UsageError(
                "other machines cannot reach this node at {}: give it its host, or pass "
                "serve_on=False".format(self.url)
            )
        self._loop.call(self._download(digest, sources, into, deadline, serve_on))

    def sent(self, digest: str) -> int:
        """Bytes of a manifest's files that this node has sent."""
        share = self._server.shares.get(digest)
        return share.sent if share else 0

    def next_configuration(
        self, source: str, name: str, after: int, seconds: float
    ) -> Optional[Configuration]:
        """As `Configurations.next`, from a node that serves configurations.

        Args:
          source: the node's URL.

        Raises:
          BadInput: the node does not answer or refuses, or the version is not kept any more.
        """
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            wait = max(0, min(int(left), int(LONGEST_WAIT)))
            try:
                found = self._loop.call(self._client.configuration(source, name, after + 1, wait))
            except SourceFailed as failure:
                raise BadInput("{}: {}".format(source, failure)) from failure
            if found is not None:
                return Configuration(after + 1, json.loads(found.decode("utf-8")))
            if left <= 1:
                return None

    def close(self) -> None:
        """Serves no more; waits for nothing."""
        self._loop.close(self._shut)

    async def _open(self) -> None:
        self._listening: Any = None
        self._client: Any = None
        tls = (self._tls.server(), self._tls.client()) if self._tls else (None, None)
        self._listening = await listen(
            self._server.handle, Limits(self._log), self._bind, self._port, tls[0]
        )
        host = "[{}]".format(self._host) if ":" in self._host else self._host
        self._server.authority = "{}:{}".format(host, self._listening.port)
        self.url = "{}://{}".format("https" if self._tls else "http", self._server.authority)
        if authority_of(self.url) is None:
            raise UsageError("{!r} is no host by which others could reach it".format(self._host))
        self._client = Client(self._key, tls[1], self.url)

    async def _shut(self) -> None:
        if self._listening is not None:
            await self._listening.close()
            self._log.close()
        if self._client is not None:
            await self._client.close()

    def _share(self, holding: Holding, is_root: bool) -> Share:
        share = Share(holding, is_root)
        self._server.shares[share.digest] = share
        return share

    async def _download(
        self, digest: str, sources: List[str], into: Any, deadline: float, serve_on: bool
    ) -> None:
        begun: List[Share] = []

        def begin(holding: Incoming) -> Any:
            if not serve_on or digest in self._server.shares:  # it has all of it already
                return list
            begun.append(self._share(holding, False))
            return begun[0].sources

        running = Download(
            self._client,
            digest,
            sources,
            into,
            serve_on,
            self.url,
            time.monotonic() + deadline,
            begin,
        )
        try:
            await running.run()
        except BaseException:
            if begun:
                del self._server.shares[digest]
            raise
        if begun:
            self._followed[digest] = asyncio.ensure_future(self._stay_known(digest, sources))

    async def _stay_known(self, digest: str, sources: List[str]) -> None:
        """Has the roots tell others of this node for as long as it serves."""
        while True:
            for source in sources:
                with contextlib.suppress(SourceFailed):  # it may have ended long ago
                    await self._client.state(source, digest, True)
            await asyncio.sleep(_HEARD_EVERY)


def _is_loopback(url: str) -> bool:
    host = (authority_of(url) or "").rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return host == "localhost"
