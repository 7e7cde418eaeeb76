"""The status of a job over HTTP: read-only, without a key.

    /              lines for people (`semisync.cluster.status.text`)
    /status.json   the document (`semisync.cluster.status.document`)
    /metrics       for Prometheus (`semisync.cluster.status.metrics`)

It listens to this machine only, unless given another address. Connections have the limits of
`semisync.cluster.files.connections`; the document is made at most once a
second, however many ask.
"""

import asyncio
import time
from typing import Any, Callable, Dict, Optional

from aiohttp import web

from semisync.cluster.files.connections import Limits, listen
from semisync.cluster.files.loop import LoopThread
from semisync.cluster.files.refusals import RefusalLog, Refused
from semisync.cluster.status.document import document
from semisync.cluster.status.metrics import CONTENT_TYPE, metrics
from semisync.cluster.status.text import lines
from semisync.common.errors import SemisyncError
from semisync.common.terminal import shown

_FRESH = 1.0  # seconds
_SAFE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class StatusServer:
    """Serves a document until it is closed.

    Args:
        read: function that returns the document; may take a moment, and raise SemisyncError.
        host: the address to listen to.
        port: 0 lets the kernel pick one.

    Attributes:
        url: http://host:port

    Raises:
        UsageError: it cannot listen there.
    """

    def __init__(
        self, read: Callable[[], Dict[str, Any]], host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._read = read
        self._log = RefusalLog()
        self._found: Dict[str, Any] = {}
        self._found_at = float("-inf")
        self._reading: Optional[asyncio.Lock] = None
        self._loop = LoopThread("semisync-status-page")
        try:
            self._listening = self._loop.call(listen(self._answer, Limits(self._log), host, port))
        except BaseException:
            self._loop.close()
            raise
        shown = "[{}]".format(host) if ":" in host else host
        self.url = "http://{}:{}".format(shown, self._listening.port)

    def __enter__(self) -> "StatusServer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Serves no more."""
        self._loop.close(self._listening.close)
        self._log.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "only GET and HEAD are served")
        path = request.raw_path
        if path not in ("/", "/status.json", "/metrics"):
            raise Refused(404, "there is no such path")
        try:
            found = await self._current()
        except SemisyncError as error:
            raise Refused(503, str(error)) from error
        if path == "/metrics":
            headers = dict(_SAFE, **{"Content-Type": CONTENT_TYPE})
            return web.Response(body=metrics(found).encode("utf-8"), headers=headers)
        if path == "/status.json":
            return web.json_response(found, headers=_SAFE)
        return web.Response(text="\n".join(map(shown, lines(found))) + "\n", headers=_SAFE)

    async def _current(self) -> Dict[str, Any]:
        if self._reading is None:  # made here: before Python 3.10 a Lock is of the current loop
            self._reading = asyncio.Lock()
        async with self._reading:
            if time.monotonic() - self._found_at >= _FRESH:
                loop = asyncio.get_event_loop()
                self._found = await loop.run_in_executor(None, self._read)
                self._found_at = time.monotonic()
            return self._found


class Page(StatusServer):
    """The page of a job without launchers, from the chief itself.

    Args:
        job: its id.
        host, port: see `StatusServer`.

    Examples:
        >>> with status.Page("ctr-7") as page:  # then status.StatusHook(hook, page.show)
        ...     print(page.url)
        http://127.0.0.1:...
    """

    def __init__(self, job: str, host: str = "127.0.0.1", port: int = 0) -> None:
        self._job = job
        self._training: Optional[Dict[str, Any]] = None
        super().__init__(self._document, host, port)

    def show(self, training: Dict[str, Any]) -> None:
        """Has the page show a report of `StatusHook`.

        Args:
            training: the report of `StatusHook`.
        """
        self._training = training

    def _document(self) -> Dict[str, Any]:
        return document(self._job, time.time(), None, self._training)
