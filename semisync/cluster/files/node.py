"""A node: publishes folders, and serves configurations, until it is closed.

    key = files.read_key("job.key")

    with files.Node(key, host="10.0.0.1") as origin:              # where the files are
        digest = origin.publish("vocabularies", job="ctr-7")
        ...                                                       # tell others digest, origin.url

    files.download(key, digest, [url], into="vocabularies", deadline=600)

The event loop runs in a thread of its own, so that a job of plain functions, such as a TensorFlow
script, can use it.
"""

from typing import Any, Dict, Optional

from semisync.cluster.files.configurations import Configurations
from semisync.cluster.files.connections import Limits, listen
from semisync.cluster.files.loop import LoopThread
from semisync.cluster.files.manifest import make_manifest
from semisync.cluster.files.refusals import RefusalLog
from semisync.cluster.files.server import Server, authority_of
from semisync.cluster.files.share import Share
from semisync.cluster.files.signing import Verifier
from semisync.cluster.files.tls import Tls
from semisync.common.errors import UsageError


class Node:
    """Serves published files and configurations; use it as a context manager.

    Args:
        key: the job's, see `semisync.cluster.files.read_key`.
        host: the name or address by which others reach this machine, and to which it listens.
        port: 0 lets the kernel pick one.
        bind: the address to listen to, where it is not `host`, such as "0.0.0.0" in a container.
        tls: a `Tls`, or None for plain HTTP, where nobody else reads the network.
        configurations: the `Configurations` to serve, for machines that do not reach ZooKeeper.

    Attributes:
        url: http://host:port, or https; what others pass as a source.

    Raises:
        UsageError: it cannot listen there, or others could not reach it by `host`.

    Examples:
        >>> key = files.read_key("job.key")
        >>> with files.Node(key) as origin:  # where the files are
        ...     digest = origin.publish("vocabularies", job="ctr-7")
        ...     files.download(key, digest, [origin.url], into="copy", deadline=60)
        >>> open("copy/user.txt").read().split()
        ['ann', 'bob']
    """

    def __init__(
        self,
        key: bytes,
        host: str = "127.0.0.1",
        port: int = 0,
        bind: Optional[str] = None,
        tls: Optional[Tls] = None,
        configurations: Optional[Configurations] = None,
    ) -> None:
        self._log = RefusalLog()
        self._server = Server(Verifier(key), configurations)
        self._listening: Any = None
        self._loop = LoopThread("semisync-files")
        self.url = ""
        try:
            self._loop.call(self._open(host, bind or host, port, tls))
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
        """Serves every file below `folder`.

        The files must stay as they are while they are served.

        Args:
            folder: str or path.
            job: the job's id.

        Returns:
            The digest of the manifest.

        Raises:
            UsageError, BadInput: see `semisync.cluster.files.make_manifest`.
        """
        share = Share(make_manifest(folder, job), folder)
        self._server.shares[share.digest] = share
        return share.digest

    def close(self) -> None:
        """Stops serving, at once."""
        self._loop.close(self._shut)

    async def _open(self, host: str, bind: str, port: int, tls: Optional[Tls]) -> None:
        context = tls.server() if tls else None
        self._listening = await listen(self._server.handle, Limits(self._log), bind, port, context)
        shown = "[{}]".format(host) if ":" in host else host
        self._server.authority = "{}:{}".format(shown, self._listening.port)
        self.url = "{}://{}".format("https" if tls else "http", self._server.authority)
        if authority_of(self.url) is None:
            raise UsageError("{!r} is not a host by which others could reach it".format(host))

    async def _shut(self) -> None:
        if self._listening is not None:
            await self._listening.close()
            self._log.close()
