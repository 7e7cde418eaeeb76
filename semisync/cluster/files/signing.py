"""Signed requests and answers: only who has the job's key may read, and only they are believed.

The client:
1. makes a nonce of 128 random bits and takes the time;
2. signs, with HMAC-SHA256 under the key, the lines: SCHEME, method, the host:port that it asks, the
   path as it stands in the request, the Range header ("" where there is none), the time, the nonce;
3. sends them as `Authorization: Semisync-HMAC-SHA256 time=SECONDS,nonce=HEX,mac=HEX`.

The server, which knows its own host:port:
4. computes the same MAC and compares both in constant time;
5. refuses a time more than WINDOW seconds away from its own clock;
6. refuses a nonce that it has seen. It keeps the nonces of right signatures until their time is out
   of the window, at most MOST_NONCES; beyond that it refuses everything, and forgets none;
7. signs its answer, be it a refusal of 5 or 6, with HMAC-SHA256 under the key over the lines:
   ANSWER, the request's method, host:port, path, Range, time and nonce, the answer's status, its
   Retry-After ("" where there is none), the SHA-256 of its body. A refusal of 4 it does not sign;
8. sends that as `Authentication-Info: mac=HEX` (RFC 7615). A manifest and the bytes of a file have
   none: the digest that the client was given proves them, whoever sends them.

The client:
9. computes the MAC of what it asked and what came, and compares both in constant time. An answer
   without the right one is an error that shows it, whether it has a version, says "not yet" or
   "later", or refuses.

So a request that was overheard serves neither again nor at another server, and an answer for no
request but its own. What is overheard can be read: use TLS outside of one private network.
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
ANSWER = SCHEME + " answer"  # no request's lines begin so
ANSWER_HEADER = "Authentication-Info"
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


class Answer(NamedTuple):
    """What is signed of an answer."""

    status: int
    wait: str  # the Retry-After header
    body: bytes


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


def answer_signature(key: bytes, request: Request, header: str, answer: Answer) -> str:
    """The Authentication-Info header of the answer to a request with this Authorization header."""
    match = _HEADER.fullmatch(header)
    assert match is not None
    said = str(answer.status), answer.wait, hashlib.sha256(answer.body).hexdigest()
    return "mac=" + _hmac(key, (ANSWER, *request, *match.groups()[:2], *said))


def is_signed(key: bytes, request: Request, header: str, answer: Answer, signed: str) -> bool:
    """Whether an answer's Authentication-Info header is right, for what was asked."""
    expected = answer_signature(key, request, header, answer)
    return hmac.compare_digest(expected.encode(), signed.encode("utf-8", "surrogateescape"))


def _mac(key: bytes, request: Request, at: str, nonce: str) -> str:
    return _hmac(key, (SCHEME, *request, at, nonce))


def _hmac(key: bytes, lines: Tuple[str, ...]) -> str:
    signed = "\n".join(lines).encode("utf-8", "surrogateescape")
    return hmac.new(key, signed, hashlib.sha256).hexdigest()


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
        if not self._is_right(request, at, nonce, mac):
            return "the signature is wrong"
        now = self._clock()
        if abs(now - int(at)) > WINDOW:
            return "its time differs from this server's by more than {:.0f} s".format(WINDOW)
        self._forget(now)
        if nonce in self._nonces:
            return REPLAYED
        if len(self._nonces) >= self._most:
            return "too many requests in {:.0f} s".format(WINDOW)
        self._nonces.add(nonce)
        # Refused by its time alone once its whole window is past.
        self._expiring.append((max(now, int(at)) + WINDOW + 1, nonce))
        return None

    def sign(self, request: Request, header: Optional[str], answer: Answer) -> Optional[str]:
        """The Authentication-Info header of an answer; None where the request's MAC is wrong.

        Else who alters a request on its way would have its refusal signed, for the one who sent it.
        """
        match = _HEADER.fullmatch(header or "")
        if match is None or not self._is_right(request, *match.groups()):
            return None
        return answer_signature(self._key, request, match.group(), answer)

    def _is_right(self, request: Request, at: str, nonce: str, mac: str) -> bool:
        is_one_line_each = not any("\n" in part for part in request)
        return is_one_line_each and hmac.compare_digest(_mac(self._key, request, at, nonce), mac)

    def _forget(self, now: float) -> None:
        """Drops nonces that are out of the window; those kept longer are behind one that is not."""
        while self._expiring and self._expiring[0][0] < now:
            self._nonces.discard(self._expiring.popleft()[1])
