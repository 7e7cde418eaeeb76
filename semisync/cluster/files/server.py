"""The HTTP server of a manifest's files: GET and HEAD of the files in it, and nothing else.

    /manifest      the manifest's JSON
    /files/PATH    a file, or a range of it, by aiohttp's FileResponse

A request, in order:

1. another method than GET and HEAD is refused (405), a request with a body (413), and one with
   more than MOST_HEADERS headers (431);
2. so is one without `Authorization: Bearer TOKEN` (401), whatever it asks for. The token is drawn
   for each server, and reaches the job's machines through ZooKeeper;
3. the path, as it stands in the request, is looked up among those of the manifest. Nothing is
   decoded, joined or opened by a name that a client chose (404);
4. a file is refused for a while (503) where SENDING are on their way already.

The bytes are proven by the manifest's digest, whoever sends them, and can be read on the way, as
can all traffic of TensorFlow's own servers. Refusals are answered and logged by
`semisync.cluster.files.connections`, which has limits, too.
"""

import hmac
import os
import secrets
from typing import Any, Dict

from aiohttp import web

from semisync.cluster.files.connections import Limits, listen
from semisync.cluster.files.download import MANIFEST, bearer, file_path
from semisync.cluster.files.loop import LoopThread
from semisync.cluster.files.manifest import File, Manifest
from semisync.cluster.files.refusals import RefusalLog, Refused

MOST_HEADERS = 64
SENDING = 16  # files at once


class FileServer:
    """Serves from the start until it is closed.

    Args:
        manifest: a `Manifest`.
        folder: where its files are; they must stay as they are.
        host: the name or address by which others reach this machine, and to which it listens.

    Attributes:
        url: http://host:port
        token: the bearer token of every request.

    Raises:
        UsageError: it cannot listen there.
    """

    def __init__(self, manifest: Manifest, folder: str, host: str) -> None:
        self.token = secrets.token_hex(32)
        self._expected = bearer(self.token).encode()
        self._manifest, self._folder = manifest.to_bytes(), folder
        self._files: Dict[str, File] = {file_path(file.path): file for file in manifest.files}
        self._sending = 0
        self._log = RefusalLog()
        self._loop = LoopThread("semisync-files")
        try:
            self._listening = self._loop.call(listen(self._answer, Limits(self._log), host, 0))
        except BaseException:
            self._loop.close()
            raise
        shown = "[{}]".format(host) if ":" in host else host
        self.url = "http://{}:{}".format(shown, self._listening.port)

    def close(self) -> None:
        """Stops serving, at once."""
        self._loop.close(self._listening.close)
        self._log.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        headers, path = request.headers, request.raw_path
        if len(headers) > MOST_HEADERS:
            raise Refused(431, "it has more than {} headers".format(MOST_HEADERS))
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "only GET and HEAD are served")
        sized = headers.get("Content-Length", "0") != "0"
        if sized or "Transfer-Encoding" in headers or request.can_read_body:
            raise Refused(413, "a request has no body")
        # As bytes: compare_digest takes text of ASCII characters only.
        shown = headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, self._expected):
            raise Refused(401, "it does not show the job's token")
        if path == MANIFEST:
            return web.Response(body=self._manifest, content_type="application/json")
        if path not in self._files:
            raise Refused(404, "there is no such path")
        return await self._file(request, self._files[path])

    async def _file(self, request: web.BaseRequest, file: File) -> web.StreamResponse:
        if set(request.headers.getall("Accept-Encoding", [])) - {"identity"}:
            # aiohttp would look for PATH.gz, which no manifest has.
            raise Refused(406, "files are served as they are")
        if self._sending >= SENDING:
            raise Refused(503, "{} files are being sent already".format(SENDING))
        connection: Any = request.protocol
        size, place = _size(request, file.size), os.path.join(self._folder, file.path)
        if os.path.islink(place) or not os.path.isfile(place):
            raise Refused(404, "the file is gone")
        response = _File(place, headers={"Content-Type": "application/octet-stream"})
        self._sending += 1
        try:
            await connection.within_limit(response.prepare(request), size)
        finally:
            self._sending -= 1
        return response


class _File(web.FileResponse):
    """A file for which the handler waits; aiohttp, which asks for it again, would send it twice."""

    _is_sent = False

    async def prepare(self, request: web.BaseRequest) -> Any:
        if self._is_sent:
            return None
        self._is_sent = True
        return await super().prepare(request)


def _size(request: web.BaseRequest, whole: int) -> int:
    """The number of bytes requested of a file of `whole` bytes."""
    try:
        size = len(range(*request.http_range.indices(whole)))
    except ValueError:
        size = 0
    if not size and "Range" in request.headers:
        raise Refused(416, "its Range is not one range of the file's {} bytes".format(whole))
    return size
