"""Which bytes of a file a request asks for: Range, If-Range and If-None-Match of RFC 9110.

One range per request, in bytes. What the RFC lets a server ignore, such as several ranges or
another unit, is refused: a client that means something else than it gets is a defect.
"""

import re
from typing import Mapping, NamedTuple, Optional

from semisync.cluster.files.refusals import Refused

_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))")


class Span(NamedTuple):
    """Bytes `first` to `last` of a file; `whole`: the answer is 200, not 206."""

    first: int
    last: int
    whole: bool

    @property
    def size(self) -> int:
        """In bytes."""
        return self.last - self.first + 1


def unchanged(headers: Mapping[str, str], tag: str) -> bool:
    """Whether the client has this version, by If-None-Match; the answer is 304 then."""
    asked = headers.get("If-None-Match")
    tags = [one.strip() for one in asked.split(",")] if asked else []
    return any(one in ("*", tag, "W/" + tag) for one in tags)


def asked_for(headers: Mapping[str, str], size: int, tag: str) -> Span:
    """The `Span` of a file of `size` bytes whose ETag is `tag`.

    Raises:
      Refused: 416, the range is no range of the file.
    """
    whole = Span(0, size - 1, True)
    asked = headers.get("Range")
    if asked is None or headers.get("If-Range", tag) != tag:
        return whole
    match = _RANGE.fullmatch(asked)
    if match is None:
        raise Refused(416, "its Range is not one range of bytes", size)
    first, last, suffix = (_int(group) for group in match.groups())
    if first is None:  # the last so many bytes
        assert suffix is not None
        first, last = max(0, size - suffix), size - 1
        satisfiable = suffix > 0 and size > 0
    else:
        satisfiable = first < size and (last is None or first <= last)
    if not satisfiable:
        raise Refused(416, "its Range is outside of the file's {} bytes".format(size), size)
    return Span(first, size - 1 if last is None else min(last, size - 1), False)


def _int(digits: Optional[str]) -> Optional[int]:
    return int(digits) if digits else None
