"""What a machine asks of nodes over HTTP: signed, with a deadline, and checked before it is used.

A manifest and a chunk are returned as they come: the caller has their digests. Any other answer, a
refusal included, counts only if it is signed (`semisync.cluster.files.signing`). No redirect is
followed, no proxy is used, nothing is decompressed, and an answer longer than it may be is cut. A
failure is a `SourceFailed`, whose text says what the source did.
"""

import asyncio
from typing import Any, Optional

import aiohttp
from yarl import URL

from semisync.cluster.files.connections import ANSWER_SECONDS, SLOWEST
from semisync.cluster.files.manifest import LARGEST, Chunk
from semisync.cluster.files.server import authority_of
from semisync.cluster.files.share import configuration_path, file_path, manifest_path
from semisync.cluster.files.signing import (
    ANSWER_HEADER,
    REPLAYED,
    Answer,
    Request,
    is_signed,
    signature,
)

CONNECT_SECONDS = 5.0
SILENT_SECONDS = 15.0  # without a byte
_AHEAD = 1 << 20  # bytes that a connection may be ahead
_SMALL = 1 << 20  # bytes of a configuration
_REFUSAL = 4096  # bytes of an answer that has nothing of what was asked for
_LONGEST_WAIT = 30.0  # seconds that a source may put off


class SourceFailed(Exception):
    """A source did not do what it was asked.

    Attributes:
        wait: seconds after which it wants to be asked again, where it only says "not now".
        refused: whether asking again is of no use.
    """

    def __init__(self, text: str, wait: Optional[float] = None, refused: bool = False) -> None:
        super().__init__(text)
        self.wait, self.refused = wait, refused


class Client:
    """Asks sources; lives in one event loop.

    Args:
        key: the job's.
        tls: an ssl.SSLContext, or None for http.
    """

    def __init__(self, key: bytes, tls: Any) -> None:
        self._key = key
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
        return bytes(await self._get(source, manifest_path(digest), LARGEST, has_digest=True))

    async def chunk(self, source: str, digest: str, chunk: Chunk) -> bytearray:
        """The bytes of a chunk, unchecked but for their number."""
        wanted = "bytes={}-{}".format(chunk.first, chunk.first + chunk.size - 1)
        path = file_path(digest, chunk.file.path)
        body = await self._get(source, path, chunk.size, wanted, has_digest=True)
        if len(body) != chunk.size:
            raise SourceFailed("it sent {} bytes instead of {}".format(len(body), chunk.size))
        return body

    async def configuration(self, source: str, name: str, version: int) -> Optional[bytes]:
        """A version of a configuration; None where it is not there yet."""
        try:
            return bytes(await self._get(source, configuration_path(name, version), _SMALL))
        except SourceFailed as failure:
            if failure.wait is not None:
                return None
            raise

    async def _get(
        self, source: str, path: str, most: int, span: str = "", has_digest: bool = False
    ) -> bytearray:
        """An answer's bytes, at most `most`; span: the Range, "" for all.

        has_digest: the caller checks them by a digest, and they need no signature.
        """
        signed = Request("GET", authority_of(source) or "", path, span)
        headers = {"Authorization": signature(self._key, signed), "Accept-Encoding": "identity"}
        if span:
            headers["Range"] = span
        deadline = aiohttp.ClientTimeout(
            total=ANSWER_SECONDS + most / SLOWEST,
            sock_connect=CONNECT_SECONDS,
            sock_read=SILENT_SECONDS,
        )
        try:
            async with self._session.get(
                URL(source + path, encoded=True),
                headers=headers,
                allow_redirects=False,
                timeout=deadline,
            ) as answer:
                is_served = answer.status == (206 if span else 200)
                body = await _body(answer, most if is_served else _REFUSAL, cut=not is_served)
                if not (is_served and has_digest):
                    self._check(signed, headers["Authorization"], answer, bytes(body))
                if not is_served:
                    _fail(answer, bytes(body))
                return body
        except asyncio.TimeoutError as error:
            raise SourceFailed("it was silent for too long") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SourceFailed("{}".format(error or type(error).__name__)) from error

    def _check(self, signed: Request, header: str, answer: Any, body: bytes) -> None:
        """Raises SourceFailed unless the answer comes from who has the key, and to this request."""
        came = Answer(answer.status, answer.headers.get("Retry-After", ""), body)
        if not is_signed(self._key, signed, header, came, answer.headers.get(ANSWER_HEADER, "")):
            raise SourceFailed(
                "it answered {}: {}, without a signature by the job's key: give both sides the "
                "same key, or find out who answers there".format(answer.status, _shown(body)),
                refused=answer.status == 401,
            )


def _fail(answer: Any, body: bytes) -> None:
    said, wait = _shown(body), answer.headers.get("Retry-After", "")
    if answer.status in (404, 503) and wait.isdigit():
        raise SourceFailed(said, wait=min(float(wait), _LONGEST_WAIT))
    if answer.status == 401 and said == REPLAYED:  # aiohttp repeats a GET that was cut off
        raise SourceFailed(said, wait=0.0)
    text = "it answered {}: {}".format(answer.status, said)
    raise SourceFailed(text, refused=answer.status == 401)


def _shown(body: bytes) -> str:
    """What a source said, for an error."""
    said = " ".join(body.decode("utf-8", "replace").split())
    return "".join(c if c.isprintable() else "?" for c in said)[:200]


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
