"""The HTTP server of a node: signed GET and HEAD of what it shares, and nothing else.

    /DIGEST/manifest               the manifest's JSON
    /DIGEST/state                  {"have": chunks as hexadecimal bits, "sources": [URL, ...],
                                    "again": seconds after which to ask again}
    /DIGEST/files/PATH             a file, or a range of it (206), with its SHA-256 as ETag
    /configurations/NAME/VERSION   a version of a configuration; with ?wait=SECONDS as soon as it
                                   is there, or 404 after so many seconds

A request, in order:

1. another method than GET and HEAD is refused (405), a request with a body (413), and one with
   more than MOST_HEADERS headers (431);
2. so is one whose signature is not right (401, `semisync.cluster.files.signing`), whatever it asks
   for;
3. the path, as it stands in the request, is looked up among those that the shares have. Nothing is
   decoded, joined or opened by a name that a client chose (404);
4. what is not here yet, or is on lease to another follower, is refused for a while (503), and so is
   a file where SENDING are on their way already.

Refusals are logged by `semisync.cluster.files.refusals`, limits on connections are those of
`semisync.cluster.files.connections`.
"""

import asyncio
import os
import re
from typing import Any, Dict, Optional

from aiohttp import web

from semisync.cluster.files.feed import Feed
from semisync.cluster.files.manifest import File
from semisync.cluster.files.pace import Pace
from semisync.cluster.files.ranges import asked_for, unchanged
from semisync.cluster.files.refusals import RefusalLog, Refused
from semisync.cluster.files.share import Share, manifest_path, state_path
from semisync.cluster.files.signing import Request, Verifier
from semisync.common.errors import SemisyncError

ANNOUNCED = "Semisync-Source"
MOST_HEADERS = 64
SENDING = 16  # files at once
LONGEST_WAIT = 10.0  # seconds for a version of a configuration
_FIRST_BLOCK = 1 << 16  # bytes, which take the head with them
_BLOCK = 1 << 20
_URL = re.compile(r"https?://[A-Za-z0-9._\-\[\]:]{1,255}:[0-9]{1,5}")
_CONFIGURATION = re.compile(
    r"/configurations/([A-Za-z0-9._-]{1,100})/([0-9]{1,9})(?:\?wait=([0-9]{1,4}))?"
)


class Server:
    """Answers requests; lives in one event loop.

    Args:
      verifier: the `Verifier` of signatures.
      log: the `RefusalLog`.
      pace: of what it sends.
      feed: the `Feed` of configurations, or None.

    Attributes:
      authority: its own host:port, as clients sign it; set once it is known.
      shares: {digest: Share}.
    """

    def __init__(
        self, verifier: Verifier, log: RefusalLog, pace: Pace, feed: Optional[Feed] = None
    ) -> None:
        self.authority = ""
        self.shares: Dict[str, Share] = {}
        self._verifier, self._pace = verifier, pace
        self._feed = feed
        self._sending = 0
        self._log = log

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request."""
        try:
            response = await self._answer(request)
        except Refused as refused:
            self._log.add(
                str(request.remote),
                request.method,
                request.raw_path,
                refused.status,
                refused.reason,
            )
            response = _refusal(refused)
        share = self.shares.get(request.raw_path[1:65])
        if share is not None and share.is_crowded:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if len(request.headers) > MOST_HEADERS:
            raise Refused(431, "it has more than {} headers".format(MOST_HEADERS))
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "only GET and HEAD are served")
        sized = request.headers.get("Content-Length", "0") != "0"
        if sized or "Transfer-Encoding" in request.headers or request.can_read_body:
            raise Refused(413, "a request has no body")
        follower = self._checked(request)
        path = request.raw_path
        if path.startswith("/configurations/"):
            return await self._configuration(path)
        share = self.shares.get(path[1:65])
        if share is not None:
            share.hear(follower)
            if path == manifest_path(share.digest):
                return _document(request, share.manifest, share.digest)
            if path == state_path(share.digest):
                return web.json_response(share.state(follower))
            if path in share.paths:
                return await self._file(request, share, share.paths[path], follower)
        raise Refused(404, "there is no such path")

    def _checked(self, request: web.BaseRequest) -> str:
        """The client's own URL as a source, or "", if its signature is right."""
        headers = request.headers
        if any(len(headers.getall(name, [])) > 1 for name in ("Authorization", "Range", ANNOUNCED)):
            raise Refused(401, "a signed header came twice")
        announced = headers.get(ANNOUNCED, "")
        signed = Request(
            request.method, self.authority, request.raw_path, headers.get("Range", ""), announced
        )
        reason = self._verifier.refusal(signed, headers.get("Authorization"))
        if reason is not None:
            raise Refused(401, reason)
        if announced and not _URL.fullmatch(announced):
            raise Refused(400, "what it announces is no source's URL")
        return announced

    async def _file(
        self, request: web.BaseRequest, share: Share, file: File, follower: str
    ) -> web.StreamResponse:
        tag = '"{}"'.format(file.sha256)
        headers = {
            "Accept-Ranges": "bytes",
            "Content-Type": "application/octet-stream",
            "ETag": tag,
        }
        if unchanged(request.headers, tag):
            return web.Response(status=304, headers=headers)
        span = asked_for(request.headers, file.size, tag)
        if not span.whole:
            headers["Content-Range"] = "bytes {}-{}/{}".format(span.first, span.last, file.size)
        response = web.StreamResponse(status=200 if span.whole else 206, headers=headers)
        response.content_length = span.size
        if share.is_crowded:  # said in the head, which may be sent before this returns
            response.force_close()
        if request.method == "HEAD" or not span.size:
            return response
        if self._sending >= SENDING:
            raise Refused(503, "{} files are on their way already".format(SENDING), wait=1)
        reason = share.grants(file, span.first, span.last, follower)
        if reason is not None:
            raise Refused(503, reason, wait=0)
        self._sending += 1
        try:
            await self._send(request, response, share, file, span.first, span.size)
        finally:
            self._sending -= 1
        return response

    async def _send(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        share: Share,
        file: File,
        first: int,
        size: int,
    ) -> None:
        connection: Any = request.protocol
        try:
            descriptor = share.holding.open(file)
        except OSError as error:
            raise Refused(404, "the file is gone: {}".format(error.strerror)) from error
        with open(descriptor, "rb", buffering=0) as file_object:
            await response.prepare(request)
            end, block = first + size, min(size, _FIRST_BLOCK)
            while first < end:
                await self._pace.wait(block)
                sending = _send_block(request, response, file_object, first, block)
                try:
                    whole = await connection.within_limit(sending, block)
                except asyncio.TimeoutError:
                    return
                if not whole:  # cut off since it was published: so is the answer
                    connection.force_close()
                    return
                share.sent += block
                first += block
                block = min(end - first, _BLOCK)
            await response.write_eof()

    async def _configuration(self, path: str) -> web.StreamResponse:
        match = _CONFIGURATION.fullmatch(path)
        if match is None or self._feed is None:
            raise Refused(404, "there is no such path")
        name, version, wait = match.group(1), int(match.group(2)), int(match.group(3) or 0)
        try:
            found = await self._feed.when_there(name, version, min(wait, LONGEST_WAIT))
        except SemisyncError as error:
            raise Refused(410, str(error)) from error
        if found is None:
            return web.Response(status=404, text="not yet\n", headers={"Retry-After": "1"})
        return web.Response(body=found, content_type="application/json")


async def _send_block(
    request: web.BaseRequest, response: web.StreamResponse, file: Any, first: int, size: int
) -> bool:
    """Sends bytes of a file; False where it has fewer."""
    loop = asyncio.get_event_loop()
    if size <= _FIRST_BLOCK:
        data = await loop.run_in_executor(None, os.pread, file.fileno(), size, first)
        await response.write(data)
        return len(data) == size
    transport = request.transport
    if transport is None or transport.is_closing():  # the client has gone
        return False
    return await loop.sendfile(transport, file, first, size) == size


def _document(request: web.BaseRequest, body: bytes, digest: str) -> web.Response:
    tag = '"{}"'.format(digest)
    if unchanged(request.headers, tag):
        return web.Response(status=304, headers={"ETag": tag})
    return web.Response(body=body, content_type="application/json", headers={"ETag": tag})


def _refusal(refused: Refused) -> web.Response:
    headers: Dict[str, str] = {}
    if refused.status == 405:
        headers["Allow"] = "GET, HEAD"
    if refused.status == 416:
        headers["Content-Range"] = "bytes */{}".format(refused.size)
    if refused.wait is not None:
        headers["Retry-After"] = str(refused.wait)
    response = web.Response(status=refused.status, text=refused.reason + "\n", headers=headers)
    if refused.status in (400, 401, 405, 413, 431):  # no client of ours
        response.force_close()
    return response


def authority_of(url: str) -> Optional[str]:
    """host:port of a source's URL; None where it is none."""
    return url.partition("://")[2] if _URL.fullmatch(url) else None
