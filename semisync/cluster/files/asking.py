"""What a machine asks of nodes: a folder, and the next version of a configuration."""

import asyncio
import time
from typing import Any, Callable, List, Optional

from semisync.cluster.files.client import Client, SourceFailed
from semisync.cluster.files.configurations import Configuration
from semisync.cluster.files.downloading import Download
from semisync.cluster.files.loop import LoopThread
from semisync.cluster.files.manifest import is_digest
from semisync.cluster.files.server import authority_of
from semisync.cluster.files.tls import Tls
from semisync.common import json_text
from semisync.common.errors import BadInput, UsageError

_LOOK_AGAIN = 1.0  # seconds


def download(
    key: bytes,
    digest: str,
    sources: List[str],
    into: Any,
    deadline: float,
    tls: Optional[Tls] = None,
) -> None:
    """Downloads the files of a manifest into a folder, checked and flushed to disk.

    Args:
        key: the job's, see `semisync.cluster.files.read_key`.
        digest: of the manifest, from a place that you trust.
        sources: URLs of nodes that publish it.
        into: a folder, made if it does not exist. An older file of the same path is replaced.
        deadline: seconds.
        tls: a `Tls`, if the nodes have one.

    Raises:
        UsageError: the digest or a source is malformed, or another process downloads the same
            there.
        BadInput: what is missing, and what each source did.

    Examples:
        >>> key = files.read_key("job.key")
        >>> with files.Node(key) as origin:
        ...     digest = origin.publish("vocabularies", job="ctr-7")
        ...     files.download(key, digest, [origin.url], into="words", deadline=60)
        >>> open("words/user.txt").read().split()
        ['ann', 'bob']
    """
    if not is_digest(digest):
        raise UsageError("{!r} is not a digest: 64 hexadecimal digits".format(digest))
    if not sources:
        raise UsageError("no source: name one that publishes the files")
    for url in sources:
        _check_source(url, tls)
    _ask(key, tls, lambda client: Download(client, digest, sources, into, deadline).run())


def next_configuration(
    key: bytes, source: str, name: str, after: int, seconds: float, tls: Optional[Tls] = None
) -> Optional[Configuration]:
    """As `Configurations.next`, from a node that serves configurations.

    Args:
        key, tls: as of `download`.
        source: the node's URL.
        name: of the configuration.
        after: a version; 0 for the first one.
        seconds: how long to wait.

    Returns:
        A `Configuration`; None if it is not there in time.

    Raises:
        BadInput: the node does not answer or refuses, or the version is not kept any more.

    Examples:
        >>> from semisync.cluster.zookeeper import memory
        >>> key = files.read_key("job.key")
        >>> configurations = files.Configurations(memory.Client(memory.Tree()), "/semisync/ctr-7")
        >>> with files.Node(key, configurations=configurations) as node:
        ...     version = configurations.publish("plan", {"rate": 0.1}, after=0)
        ...     print(files.next_configuration(key, node.url, "plan", after=0, seconds=1.0))
        Configuration(version=1, document={'rate': 0.1})
    """
    _check_source(source, tls)

    async def look(client: Client) -> Optional[Configuration]:
        deadline = time.monotonic() + seconds
        while True:
            try:
                found = await client.configuration(source, name, after + 1)
            except SourceFailed as failure:
                raise BadInput("{}: {}".format(source, failure)) from failure
            if found is not None:
                return Configuration(after + 1, json_text.loads(found.decode("utf-8")))
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            await asyncio.sleep(min(left, _LOOK_AGAIN))

    return _ask(key, tls, look)


def _check_source(url: str, tls: Optional[Tls]) -> None:
    scheme = "https://" if tls else "http://"
    if authority_of(url) is None or not url.startswith(scheme):
        raise UsageError("{!r} is not a source: {}HOST:PORT was expected".format(url, scheme))


def _ask(key: bytes, tls: Optional[Tls], work: Callable[[Client], Any]) -> Any:
    """What a coroutine function of a client returns."""
    context = tls.client() if tls else None

    async def run() -> Any:
        client = Client(key, context)
        try:
            return await work(client)
        finally:
            await client.close()

    loop = LoopThread("semisync-asking")
    try:
        return loop.call(run())
    finally:
        loop.close()
