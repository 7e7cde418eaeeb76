"""The HTTP server of a node: signed GET and HEAD of what it shares, and nothing else.

    /DIGEST/manifest               the manifest's JSON
    /DIGEST/files/PATH             a file, or a range of it, by aiohttp's FileResponse
    /configurations/NAME/VERSION   a version of a configuration, or 404 until it is there

A request, in order:

1. another method than GET and HEAD is refused (405), a request with a body (413), and one with
   more than MOST_HEADERS headers (431);
2. so is one whose signature is not right (401, `semisync.cluster.files.signing`), whatever it asks
   for;
3. the path, as it stands in the request, is looked up among those that the shares have. Nothing is
   decoded, joined or opened by a name that a client chose (404);
4. a file is refused for a while (503) where SENDING are on their way already;
5. the answer is signed too, unless it is a manifest or a file, which their digests prove.

Refusals are answered and logged by `semisync.cluster.files.connections`, which has limits, too.
"""

import asyncio
import functools
import os
import re
from typing import Any, Callable, Dict, Optional

from aiohttp import web

from semisync.cluster.files.configurations import Configurations
from semisync.cluster.files.manifest import File
from semisync.cluster.files.refusals import Refused
from semisync.cluster.files.share import Share, manifest_path
from semisync.cluster.files.signing import ANSWER_HEADER, Answer, Request, Verifier
from semisync.cluster.zookeeper.client import Unavailable
from semisync.common.errors import SemisyncError

MOST_HEADERS = 64
SENDING = 16  # files at once
_NOT_YET = b"not yet\n"
_URL = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]{1,255}:[0-9]{1,5}")
_Sign = Callable[[int, bytes, Optional[int]], Dict[str, str]]
_CONFIGURATION = re.compile("/configurations/([A-Za-z0-9._-]{1,100})/([0-9]{1,9})")


class Server:
    """Answers requests; lives in one event loop.

    Args:
        verifier: the `Verifier` of signatures.
        configurations: the `Configurations`, or None.

    Attributes:
        authority: its own host:port, as clients sign it; set once it is known.
        shares: {digest: Share}.
    """

    def __init__(self, verifier: Verifier, configurations: Optional[Configurations] = None) -> None:
        self.authority = ""
        self.shares: Dict[str, Share] = {}
        self._verifier, self._configurations = verifier, configurations
        self._sending = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request, or raises Refused."""
        if len(request.headers) > MOST_HEADERS:
            raise Refused(431, "it has more than {} headers".format(MOST_HEADERS))
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "only GET and HEAD are served")
        sized = request.headers.get("Content-Length", "0") != "0"
        if sized or "Transfer-Encoding" in request.headers or request.can_read_body:
            raise Refused(413, "a request has no body")
        headers = request.headers
        if any(len(headers.getall(name, [])) > 1 for name in ("Authorization", "Range")):
            raise Refused(401, "a signed header came twice")
        signed = Request(request.method, self.authority, request.raw_path, headers.get("Range", ""))
        sign = functools.partial(self._sign, signed, headers.get("Authorization"))
        try:
            reason = self._verifier.refusal(signed, headers.get("Authorization"))
            if reason is not None:
                raise Refused(401, reason)
            return await self._found(request, sign)
        except Refused as refused:
            refused.signature = sign(refused.status, refused.body, refused.wait)
            raise

    def _sign(
        self, asked: Request, header: Optional[str], status: int, body: bytes, wait: Optional[int]
    ) -> Dict[str, str]:
        """The headers that sign an answer."""
        later = "" if wait is None else str(wait)
        signature = self._verifier.sign(asked, header, Answer(status, later, body))
        return {} if signature is None else {ANSWER_HEADER: signature}

    async def _found(self, request: web.BaseRequest, sign: _Sign) -> web.StreamResponse:
        path = request.raw_path
        if path.startswith("/configurations/"):
            return await self._configuration(path, sign)
        share = self.shares.get(path[1:65])
        if share is not None and path == manifest_path(share.digest):
            return web.Response(body=share.manifest, content_type="application/json")
        if share is None or path not in share.paths:
            raise Refused(404, "there is no such path")
        return await self._file(request, share, share.paths[path])

    async def _file(self, request: web.BaseRequest, share: Share, file: File) -> web.StreamResponse:
        if set(request.headers.getall("Accept-Encoding", [])) - {"identity"}:
            # aiohttp would look for PATH.gz, which no manifest has.
            raise Refused(406, "files are served as they are")
        if self._sending >= SENDING:
            raise Refused(503, "{} files are being sent already".format(SENDING), wait=1)
        connection: Any = request.protocol
        size, place = _size(request, file.size), os.path.join(share.folder, file.path)
        if os.path.islink(place) or not os.path.isfile(place):
            raise Refused(404, "the file is gone")
        response = _File(place, headers={"Content-Type": "application/octet-stream"})
        self._sending += 1
        try:
            await connection.within_limit(response.prepare(request), size)
        finally:
            self._sending -= 1
        return response

    async def _configuration(self, path: str, sign: _Sign) -> web.StreamResponse:
        match = _CONFIGURATION.fullmatch(path)
        if match is None or self._configurations is None:
            raise Refused(404, "there is no such path")
        read, loop = self._configurations.read, asyncio.get_event_loop()
        try:
            found = await loop.run_in_executor(None, read, match.group(1), int(match.group(2)))
        except Unavailable as error:
            raise Refused(503, str(error), wait=1) from error
        except SemisyncError as error:
            raise Refused(410, str(error)) from error
        if found is None:
            headers = {"Retry-After": "1", **sign(404, _NOT_YET, 1)}
            return web.Response(status=404, body=_NOT_YET, headers=headers)
        signature = sign(200, found, None)
        return web.Response(body=found, content_type="application/json", headers=signature)


class _File(web.FileResponse):
    """A file for which the handler waits; aiohttp, which asks for it again, would send it twice."""

    _is_sent = False

    async def prepare(self, request: web.BaseRequest) -> Any:
        if self._is_sent:
            return None
        self._is_sent = True
        return await super().prepare(request)


def _size(request: web.BaseRequest, whole: int) -> int:
    """How many bytes are asked for of a file of `whole` bytes."""
    try:
        size = len(range(*request.http_range.indices(whole)))
    except ValueError:
        size = 0
    if not size and "Range" in request.headers:
        raise Refused(416, "its Range is not one range of the file's {} bytes".format(whole))
    return size


def authority_of(url: str) -> Optional[str]:
    """host:port of a source's URL; None where it is none."""
    return url.partition("://")[2] if _URL.fullmatch(url) else None
