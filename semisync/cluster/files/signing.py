"""Signed requests: who has the job's key may read, nobody else, and each signature is valid once.

The client:
1. makes a nonce of 128 random bits and takes the time;
2. signs, with HMAC-SHA256 under the key, the lines: SCHEME, method, the host:port that it asks, the
   path as it stands in the request, the Range header ("" where there is none), the time, the nonce;
3. sends them as `Authorization: Semisync-HMAC-SHA256 time=SECONDS,nonce=HEX,mac=HEX`.

The server, which knows its own host:port:
4. refuses a time more than WINDOW seconds away from its own clock;
5. computes the same MAC and compares both in constant time;
6. refuses a nonce that it has seen. It keeps the nonces of right signatures until their time is out
   of the window, at most MOST_NONCES; beyond that it refuses everything, and forgets none.

So a request that was overheard serves neither again nor at another server, but what is overheard
can be read: use TLS outside of one private network.
"""

import collections
import hashlib
import hmac
import os
import re
import secrets
import time
from typing import Callable, Deque, NamedTuple, Optional, Set, Tuple

from semisync.cluster.secret import LONGEST, read_secret
from semisync.common.errors import UsageError

SCHEME = "Semisync-HMAC-SHA256"
WINDOW = 30.0  # seconds
MOST_NONCES = 100000  # 25 MB; 3,000 requests per second, more than one process answers
KEY_VARIABLE = "SEMISYNC_KEY"
REPLAYED = "the signature was used before"
_SHORTEST_KEY = 16  # bytes
_HEADER = re.compile(SCHEME + r" time=([0-9]{1,12}),nonce=([0-9a-f]{32}),mac=([0-9a-f]{64})")


class Request(NamedTuple):
    """What is signed of a request."""

    method: str
    authority: str
    path: str
    range: str = ""


def read_key(path: Optional[str] = None) -> bytes:
    """The job's key, from a file that only its owner may read, or from $SEMISYNC_KEY.

    Never take it from a command line, which every user of the machine can see. For a new one:
    `(umask 077; head -c 32 /dev/urandom | base64 > job.key)`.

    Args:
        path: of the file; None: the environment variable.

    Returns:
        Bytes, 16 or more.

    Raises:
        UsageError: there is no key, it is shorter than 16 bytes, or others may read the file.

    Examples:
        >>> len(files.read_key("job.key")) >= 16
        True
    """
    if path is None:
        key = os.environ.get(KEY_VARIABLE, "").encode("utf-8").strip()
        where = "${}".format(KEY_VARIABLE)
    else:
        where, key = os.fspath(path), read_secret(path)
    if not _SHORTEST_KEY <= len(key) <= LONGEST:
        raise UsageError(
            "{} holds no key: {} to {} bytes were expected, such as `head -c 32 /dev/urandom | "
            "base64` writes".format(where, _SHORTEST_KEY, LONGEST)
        )
    return key


def signature(key: bytes, request: Request, now: Optional[float] = None) -> str:
    """The Authorization header for a request, at `now`, seconds since 1970."""
    at = str(int(time.time() if now is None else now))
    nonce = secrets.token_hex(16)
    return "{} time={},nonce={},mac={}".format(SCHEME, at, nonce, _mac(key, request, at, nonce))


def _mac(key: bytes, request: Request, at: str, nonce: str) -> str:
    lines = "\n".join((SCHEME,) + tuple(request) + (at, nonce))
    return hmac.new(key, lines.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()


class Verifier:
    """Says what is wrong with a request's signature, and remembers the nonces that served.

    Args:
        key: the job's.
        clock: seconds since 1970.
        most: how many nonces it remembers.
    """

    def __init__(
        self, key: bytes, clock: Callable[[], float] = time.time, most: int = MOST_NONCES
    ) -> None:
        self._key, self._clock, self._most = key, clock, most
        self._nonces: Set[str] = set()
        self._expiring: Deque[Tuple[float, str]] = collections.deque()

    def refusal(self, request: Request, header: Optional[str]) -> Optional[str]:
        """Why the request is refused, without anything secret; None where its signature is right.

        A signature that was right once is refused from then on.
        """
        match = _HEADER.fullmatch(header or "")
        if match is None:
            return "there is no signature"
        at, nonce, mac = match.groups()
        now = self._clock()
        if abs(now - int(at)) > WINDOW:
            return "its time differs from this server's by more than {:.0f} s".format(WINDOW)
        if any("\n" in part for part in request):
            return "there is a line break in what is signed"
        if not hmac.compare_digest(_mac(self._key, request, at, nonce), mac):
            return "the signature is wrong"
        self._forget(now)
        if nonce in self._nonces:
            return REPLAYED
        if len(self._nonces) >= self._most:
            return "too many requests in {:.0f} s".format(WINDOW)
        self._nonces.add(nonce)
        # Refused by its time alone once its whole window is past.
        self._expiring.append((max(now, int(at)) + WINDOW + 1, nonce))
        return None

    def _forget(self, now: float) -> None:
        """Drops nonces that are out of the window; those kept longer are behind one that is not."""
        while self._expiring and self._expiring[0][0] < now:
            self._nonces.discard(self._expiring.popleft()[1])
