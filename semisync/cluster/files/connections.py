"""Connections with limits: how many, how long a client may take, how much it may send.

aiohttp itself waits for ever for the rest of a request's head. Here:

1. at most MOST connections are open, and MOST_PER_ADDRESS from one address; further ones are closed
   at once;
2. a whole head comes within HEAD_SECONDS of the connection's opening or of the answer before, and
   has at most HEAD_BYTES;
3. an answer of n bytes is taken within ANSWER_SECONDS + n / SLOWEST seconds.

A connection that breaks a limit is cut, and that is logged.
"""

import asyncio
import collections
from typing import Any, Counter, Dict, Optional

from aiohttp import web

from semisync.cluster.files.refusals import RefusalLog, Refused
from semisync.common.errors import UsageError

MOST = 512  # below the 1,024 open files that a process usually may have
MOST_PER_ADDRESS = 128
HEAD_SECONDS = 15.0
HEAD_BYTES = 32768
ANSWER_SECONDS = 30.0
SLOWEST = 100e3  # bytes per second


class Limits:
    """The limits shared by all connections of a server.

    Args:
        log: the `RefusalLog`.
        head_seconds, answer_seconds: see the module.
    """

    def __init__(
        self,
        log: RefusalLog,
        head_seconds: float = HEAD_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self.log = log
        self.head_seconds = head_seconds
        self.answer_seconds = answer_seconds
        self._open: Counter[str] = collections.Counter()

    def admit(self, address: str) -> Optional[str]:
        """Counts a connection in, or returns the reason to refuse it."""
        if sum(self._open.values()) >= MOST:
            return "there are {} connections already".format(MOST)
        if self._open[address] >= MOST_PER_ADDRESS:
            return "its address has {} connections already".format(MOST_PER_ADDRESS)
        self._open[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Counts a connection out."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]


async def listen(handle: Any, limits: Limits, bind: str, port: int) -> "Listening":
    """Starts to serve with these limits.

    Args:
        handle: coroutine function from a request to a response; may raise `Refused`.
        bind, port: where; 0 lets the kernel pick a port.

    Raises:
        UsageError: it cannot listen there.
    """
    loop = asyncio.get_event_loop()

    async def counted(request: web.BaseRequest) -> web.StreamResponse:
        connection: Any = request.protocol
        connection.request_began()
        try:
            return await handle(request)
        except Refused as refused:
            asked = str(request.remote), request.method, request.raw_path
            limits.log.add(*asked, refused.status, refused.reason)
            return _refusal(refused)
        except ConnectionError:  # the client has gone, or was cut
            connection.force_close()
            return web.Response()
        finally:
            connection.request_ended()

    http = web.Server(counted)
    options: Dict[str, Any] = {
        "loop": loop,
        "access_log": None,
        "keepalive_timeout": 600.0,  # `Connection` has a shorter one
        "lingering_time": 0.0,  # else aiohttp goes on reading the body of a refused request
    }
    try:
        listening = await loop.create_server(
            lambda: Connection(http, limits, **options), bind, port
        )
    except OSError as error:
        raise UsageError(
            "cannot listen on {}:{}: {}".format(bind, port, error.strerror or error)
        ) from error
    return Listening(http, listening)


def _refusal(refused: Refused) -> web.Response:
    headers: Dict[str, str] = {}
    if refused.status == 405:
        headers["Allow"] = "GET, HEAD"
    headers["Content-Type"] = "text/plain; charset=utf-8"
    response = web.Response(status=refused.status, body=refused.body, headers=headers)
    if refused.status in (401, 405, 413, 431):  # no client of ours
        response.force_close()
    return response


class Listening:
    """A listening server; port: its port."""

    def __init__(self, http: Any, listening: Any) -> None:
        self._http, self._listening = http, listening
        self.port: int = listening.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Ends every connection."""
        self._listening.close()
        await self._http.shutdown(0.1)


class Connection(web.RequestHandler):
    """aiohttp's connection, with the limits; `limits` is set before it is used."""

    __slots__ = ("_address", "_admitted", "_head", "_timer", "limits")

    def __init__(self, server: Any, limits: Limits, **options: Any) -> None:
        super().__init__(server, **options)
        self.limits = limits
        self._address = ""
        self._admitted = False
        self._head = 0  # bytes since the answer before
        self._timer: Optional[asyncio.TimerHandle] = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else "?"
        reason = self.limits.admit(self._address)
        if reason:
            self._cut(reason)
            return
        self._admitted = True
        self._expect_head()

    def connection_lost(self, exc: Optional[BaseException]) -> None:
        self._stop_timer()
        if self._admitted:
            self._admitted = False
            self.limits.leave(self._address)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head += len(data)
        if self._head > HEAD_BYTES:
            self._cut("its head is longer than {} bytes".format(HEAD_BYTES))
            return
        super().data_received(data)

    def handle_error(
        self, request: Any, status: int = 500, exc: Any = None, message: Optional[str] = None
    ) -> web.StreamResponse:
        """aiohttp's answer to bytes that are not HTTP, without its log of them."""
        if status >= 500:
            return super().handle_error(request, status, exc, message)
        reason = "it is not an HTTP request"
        self.limits.log.add(self._address, "", "", status, reason)
        response = web.Response(status=status, text=reason + "\n")
        response.force_close()
        return response

    def request_began(self) -> None:
        """A head is whole; until the answer is there, its handler sees to the time."""
        self._set_timer(self.limits.answer_seconds)

    async def within_limit(self, work: Any, size: int) -> Any:
        """Awaits `work`, a coroutine that sends `size` bytes, and returns its result.

        A connection must not be cut while asyncio sends a file through it.

        Raises:
            ConnectionResetError: it took too long, and the connection was cut.
        """
        self._stop_timer()
        try:
            return await asyncio.wait_for(work, self.limits.answer_seconds + size / SLOWEST)
        except asyncio.TimeoutError:
            self._cut("it took too long")
            raise ConnectionResetError("it took too long") from None
        finally:
            self._set_timer(self.limits.answer_seconds)

    def request_ended(self) -> None:
        """The next head may come."""
        self._head = 0
        self._expect_head()

    def _expect_head(self) -> None:
        self._set_timer(self.limits.head_seconds)

    def _set_timer(self, seconds: float) -> None:
        self._stop_timer()
        if self.transport is not None:
            self._timer = asyncio.get_event_loop().call_later(seconds, self._late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if self._head:
            self._cut("it took too long")
        elif self.transport is not None:
            self.transport.abort()  # idle: nothing to blame it for

    def _cut(self, reason: str) -> None:
        self._stop_timer()
        if self.transport is not None:
            self.limits.log.add(self._address, "", "", 0, reason)
            self.transport.abort()
