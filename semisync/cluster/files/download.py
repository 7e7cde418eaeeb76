"""Fetches the files of a manifest from the server that hands them out.

1. The manifest comes first, and must have the digest. Every answer has a largest size.
2. AT_ONCE files are on their way at a time. An interrupted one resumes where it stopped, by a
   range; where the server sends it from its beginning all the same, it begins again.
3. Until a file is whole it lies in a folder beside the target. If its bytes have the manifest's
   SHA-256, it is flushed to disk and moved to its place, through no symbolic link.
4. Failed files are tried again after all the others: in rounds, with a rest between them
   that doubles, until the deadline. A file that was wrong or refused FAILURES times is given up.

No redirect is followed, no proxy is used, and nothing is decompressed.
"""

import concurrent.futures
import contextlib
import hashlib
import http.client
import os
import random
import shutil
import threading
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional
from urllib.parse import quote, urlsplit

from semisync.cluster.files.manifest import BLOCK, LARGEST, File, Manifest, read_manifest
from semisync.common.errors import BadInput
from semisync.common.files import flush

MANIFEST = "/manifest"
AT_ONCE = 4
FAILURES = 4
SILENT_SECONDS = 15.0  # without a byte
SLOWEST = 10e3  # bytes per second
LONGEST_REST = 10.0  # seconds
_REFUSAL = 200  # bytes of an answer without any of the requested file


def file_path(path: str) -> str:
    """The path of a request for a file of a manifest."""
    return "/files/" + quote(path, safe="/")


def bearer(token: str) -> str:
    """The Authorization header of a request."""
    return "Bearer " + token


class Source(NamedTuple):
    """The source of the files, and its bearer token."""

    url: str
    token: str


class Stopped(Exception):
    """The download was stopped by its caller."""


class _Failed(Exception):
    """The source did not send the requested bytes."""

    def __init__(self, text: str, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused  # and asking again is hardly of use


class Download:
    """One download of a manifest and its files; call `run` once.

    Args:
        digest: of the manifest, from a trusted place.
        source: a function that returns the `Source`, or None while there is none.
        into: a folder that only this download writes to.
        seconds: until it fails.
        stopped: an event that ends it.
        say: called with a description of the failure before each retry.
    """

    def __init__(
        self,
        digest: str,
        source: Callable[[], Optional[Source]],
        into: str,
        seconds: float,
        stopped: threading.Event,
        say: Callable[[str], None] = lambda why: None,
    ) -> None:
        self._digest, self._source, self._into = digest, source, into
        self._deadline = time.monotonic() + seconds
        self._stopped, self._say = stopped, say
        self._parts = into + ".parts"
        self._failures: Dict[str, int] = {}  # of wrong or refused files

    def run(self) -> Manifest:
        """Returns the manifest once every file is in its place.

        Raises:
            BadInput: the missing files, and the source's failures.
            Stopped: it was.
        """
        found: List[Manifest] = []
        try:
            os.makedirs(self._parts, exist_ok=True)
            self._in_rounds([MANIFEST], lambda _: found.append(self._manifest()))
            numbers = {file.path: n for n, file in enumerate(found[0].files)}
            files = {file.path: file for file in found[0].files}
            self._in_rounds(list(files), lambda path: self._fetch(files[path], numbers[path]))
        except OSError as error:
            raise BadInput("{} cannot be written: {}".format(self._into, error.strerror)) from error
        finally:
            shutil.rmtree(self._parts, ignore_errors=True)
        return found[0]

    def _in_rounds(self, names: List[str], fetch: Callable[[str], None]) -> None:
        """Calls `fetch` with each name, and again with those for which it failed."""
        rest, left = 0.25, names
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            while True:
                why: Dict[str, str] = {}

                def attempt(name: str, why: Dict[str, str] = why) -> None:
                    self._check_stopped()
                    try:
                        fetch(name)
                    except _Failed as failure:
                        why[name] = str(failure)
                        self._failures[name] = self._failures.get(name, 0) + failure.refused

                # A list: it raises whatever else an attempt has raised.
                list(pool.map(attempt, left))
                left = [name for name in left if name in why]
                if not left:
                    return
                self._check_hope(left, why)
                self._say(why[left[0]])
                rest = min(LONGEST_REST, 2 * rest)
                # At random, since the job's machines may all have failed at the same moment.
                self._stopped.wait(rest * random.uniform(0.5, 1.0))

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise Stopped

    def _check_hope(self, left: List[str], why: Dict[str, str]) -> None:
        """Raises BadInput if time is up, or a file was wrong or refused FAILURES times."""
        worst = max(left, key=lambda name: self._failures[name])
        if self._failures[worst] >= FAILURES or time.monotonic() > self._deadline:
            raise BadInput(
                "{} of the job's files did not come, such as {}: {}".format(
                    len(left), worst.lstrip("/"), why[worst]
                )
            )

    def _manifest(self) -> Manifest:
        with self._asked(MANIFEST) as answer:
            data = b"".join(self._blocks(answer, LARGEST))
        try:
            return read_manifest(data, self._digest)
        except BadInput as error:
            raise _Failed(str(error), refused=True) from error

    def _fetch(self, file: File, number: int) -> None:
        """Fetches a file, or the rest of it, and moves it to its place."""
        part = os.path.join(self._parts, str(number))
        digest = hashlib.sha256()
        with open(part, "a+b") as stream:
            stream.seek(0)
            for block in iter(lambda: stream.read(BLOCK), b""):
                digest.update(block)
            have = stream.tell()
            if have < file.size:
                with self._asked(file_path(file.path), have) as answer:
                    if answer.status == 200 and have:  # the whole file, not the requested rest
                        stream.truncate(0)
                        digest, have = hashlib.sha256(), 0
                    for block in self._blocks(answer, file.size - have):
                        stream.write(block)
                        digest.update(block)
                        have += len(block)
            if have < file.size:
                raise _Failed("it sent {} of {} bytes".format(have, file.size))
            if digest.hexdigest() != file.sha256:
                stream.truncate(0)
                raise _Failed("it sent wrong bytes", refused=True)
            stream.flush()
            os.fchmod(stream.fileno(), 0o755 if file.executable else 0o644)
            os.fsync(stream.fileno())
        self._place(part, file.path)

    def _place(self, part: str, path: str) -> None:
        place = os.path.join(os.path.realpath(self._into), path)
        above = os.path.dirname(place)
        os.makedirs(above, exist_ok=True)
        if os.path.realpath(above) != above:
            raise BadInput("{}: a folder above it is a symbolic link".format(place))
        os.replace(part, place)
        flush(above)

    @contextlib.contextmanager
    def _asked(self, path: str, first: int = 0) -> Iterator[http.client.HTTPResponse]:
        """The source's answer, from a byte on."""
        source = self._source()
        if source is None:
            raise _Failed("who hands them out is not there")
        headers = {"Authorization": bearer(source.token), "Accept-Encoding": "identity"}
        if first:
            headers["Range"] = "bytes={}-".format(first)
        at = urlsplit(source.url)
        connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=SILENT_SECONDS)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _Failed("{}: {}".format(source.url, error or type(error).__name__)) from error
        with contextlib.closing(connection):
            if answer.status not in ((200, 206) if first else (200,)):
                said = " ".join(answer.read(_REFUSAL).decode("utf-8", "replace").split())
                refused = 400 <= answer.status < 500
                raise _Failed("it answered {}: {}".format(answer.status, said), refused)
            yield answer

    def _blocks(self, answer: http.client.HTTPResponse, most: int) -> Iterator[bytes]:
        """The chunks of a response, checked for their total size and pace."""
        begun, size = time.monotonic(), 0
        while True:
            self._check_stopped()
            try:
                # `read` would wait for a whole block, and a slow source would not be noticed.
                block = answer.read1(BLOCK)
            except (OSError, http.client.HTTPException) as error:
                raise _Failed(str(error or type(error).__name__)) from error
            if not block:
                return
            size += len(block)
            if size > most:
                raise _Failed("it sent more than {} bytes".format(most), refused=True)
            yield block
            if time.monotonic() - begun > SILENT_SECONDS + size / SLOWEST:
                raise _Failed("it sends less than {:.0f} bytes per second".format(SLOWEST))
