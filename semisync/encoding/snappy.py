"""Snappy's raw format: one block, without a frame around it.

TensorFlow before 1.2 compressed the index of a checkpoint; Monolith's dumps of several tables are
compressed, too. A block begins with a varint, its length once decompressed, which a damaged file
may announce as anything: it is checked before memory is taken.
Source: https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from semisync.common.errors import BadInput
from semisync.encoding.wire import varint

MAX_RATIO = 22  # a copy of 3 bytes yields at most 64


def decompress(data: memoryview, where: str) -> bytes:
    """The decompressed bytes; raises BadInput for anything that snappy cannot have written."""
    import pyarrow  # only here: nearly all checkpoints are written uncompressed

    length, _ = varint(data, 0, where)
    if length > MAX_RATIO * len(data):
        raise BadInput(f"{where}: a snappy block of {len(data)} bytes claims to hold {length}")
    try:
        content: bytes = pyarrow.Codec("snappy").decompress(data, length, asbytes=True)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(
            f"{where}: a snappy block does not decompress to its {length} bytes; it is corrupt"
        ) from error
    return content
