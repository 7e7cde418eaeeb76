"""What a node asks of others over HTTP: signed, with a deadline, and checked before it is used.

No redirect is followed, no proxy is used, nothing is decompressed, and an answer longer than it may
be is cut. A failure is a `SourceFailed`, whose text says what the source did.
"""

import asyncio
import json
import re
from typing import Any, Dict, List, NamedTuple, Optional

import aiohttp
from yarl import URL

from semisync.cluster.files.connections import ANSWER_SECONDS, SLOWEST
from semisync.cluster.files.manifest import LARGEST, Chunk
from semisync.cluster.files.server import ANNOUNCED, authority_of
from semisync.cluster.files.share import file_path, manifest_path, state_path
from semisync.cluster.files.signing import REPLAYED, Request, signature

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 15.0  # without a byte
_AHEAD = 1 << 20  # bytes that a connection may be ahead
_SMALL = 1 << 20  # bytes of an answer that is no file
_MOST_CHUNKS = LARGEST // 64
_LONGEST_WAIT = 30.0  # seconds that a source may put off
_HEXADECIMAL = re.compile("[0-9a-f]{1,%d}" % (_MOST_CHUNKS // 4))


class SourceFailed(Exception):
    """A source did not do what it was asked.

    Attributes:
      wait: seconds after which it wants to be asked again, where it only says "not now".
      refused: whether asking again is of no use.
    """

    def __init__(self, text: str, wait: Optional[float] = None, refused: bool = False) -> None:
        super().__init__(text)
        self.wait, self.refused = wait, refused


class State(NamedTuple):
    """What a source has: chunks as bits, other sources, seconds after which to ask again."""

    have: int
    sources: List[str]
    again: float


class Client:
    """Asks sources; lives in one event loop.

    Args:
      key: the job's.
      tls: an ssl.SSLContext, or None for http.
      announced: this node's own URL, where it is a source too.
    """

    def __init__(self, key: bytes, tls: Any, announced: str = "") -> None:
        self._key, self._announced = key, announced
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls),
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_AHEAD,
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._session.close()

    async def manifest(self, source: str, digest: str) -> bytes:
        """The manifest's bytes, unchecked."""
        return bytes(await self._get(source, manifest_path(digest), LARGEST, (200,)))

    async def state(self, source: str, digest: str, announce: bool) -> State:
        """What a source has of a manifest."""
        body = await self._get(source, state_path(digest), _SMALL, (200,), announce=announce)
        try:
            value = json.loads(body.decode("utf-8"))
            have, sources, again = value["have"], value["sources"], float(value["again"])
            right = isinstance(have, str) and _HEXADECIMAL.fullmatch(have) and again >= 0
            if not right or not all(isinstance(url, str) for url in sources):
                raise ValueError("not the expected types")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SourceFailed("it does not tell its state: {!r}".format(error)) from error
        scheme = source.partition("://")[0] + "://"
        others = [u for u in sources[:64] if authority_of(u) and u.startswith(scheme)]
        return State(int(have, 16), others, min(again, _LONGEST_WAIT))

    async def chunk(self, source: str, digest: str, chunk: Chunk, announce: bool) -> bytearray:
        """The bytes of a chunk, unchecked but for their number."""
        wanted = "bytes={}-{}".format(chunk.first, chunk.first + chunk.size - 1)
        more = {"Range": wanted, "If-Range": '"{}"'.format(chunk.file.sha256)}
        path = file_path(digest, chunk.file.path)
        body = await self._get(source, path, chunk.size, (206,), more, announce)
        if len(body) != chunk.size:
            raise SourceFailed("it sent {} bytes instead of {}".format(len(body), chunk.size))
        return body

    async def configuration(
        self, source: str, name: str, version: int, wait: int
    ) -> Optional[bytes]:
        """A version of a configuration; None where it is not there after `wait` seconds."""
        path = "/configurations/{}/{}?wait={}".format(name, version, wait)
        try:
            return bytes(await self._get(source, path, _SMALL, (200,)))
        except SourceFailed as failure:
            if failure.wait is not None:
                return None
            raise

    async def _get(
        self,
        source: str,
        path: str,
        most: int,
        statuses: Any,
        more: Optional[Dict[str, str]] = None,
        announce: bool = False,
    ) -> bytearray:
        announced = self._announced if announce else ""
        headers = dict(more or {})
        signed = Request(
            "GET", authority_of(source) or "", path, headers.get("Range", ""), announced
        )
        headers["Authorization"] = signature(self._key, signed)
        headers["Accept-Encoding"] = "identity"
        if announced:
            headers[ANNOUNCED] = announced
        url = URL(source + path, encoded=True)
        deadline = aiohttp.ClientTimeout(
            total=ANSWER_SECONDS + most / SLOWEST,
            sock_connect=CONNECT_SECONDS,
            sock_read=SILENT_SECONDS,
        )
        try:
            async with self._session.get(
                url, headers=headers, allow_redirects=False, timeout=deadline
            ) as answer:
                if answer.status not in statuses:
                    await self._fail(answer)
                return await _body(answer, most)
        except asyncio.TimeoutError as error:
            raise SourceFailed("it was silent for too long") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceFailed("{}".format(error or type(error).__name__)) from error

    async def _fail(self, answer: Any) -> None:
        said = bytes(await _body(answer, 1000, cut=True)).decode("utf-8", "replace")
        said = "".join(c if c.isprintable() else "?" for c in " ".join(said.split()))[:200]
        wait = answer.headers.get("Retry-After", "")
        if answer.status in (404, 503) and wait.isdigit():
            raise SourceFailed(said, wait=min(float(wait), _LONGEST_WAIT))
        if answer.status == 200:
            raise SourceFailed("it has another version of the file", refused=True)
        if answer.status == 401 and said == REPLAYED:  # aiohttp repeats a GET that was cut off
            raise SourceFailed(said, wait=0.0)
        text = "it answered {}: {}".format(answer.status, said)
        raise SourceFailed(text, refused=answer.status == 401)


async def _body(answer: Any, most: int, cut: bool = False) -> bytearray:
    """The answer's bytes, at most `most`."""
    body = bytearray()
    async for part in answer.content.iter_any():
        body += part
        if len(body) > most:
            if cut:
                answer.close()
                return body[:most]
            raise SourceFailed("it sent more than {} bytes".format(most))
    return body
