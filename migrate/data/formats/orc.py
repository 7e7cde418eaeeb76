"""ORC: a block is a stripe.

pyarrow does not tell the rows of a stripe, so they are read from the footer: a protobuf message,
perhaps compressed in chunks, each with a header of 3 bytes: its length times two, plus 1 where it
stands as it is. Source: https://orc.apache.org/specification/ORCv1, "File Tail" and "Compression".
"""

from __future__ import annotations

import zlib
from typing import Any, Dict, List, Sequence, Tuple

import pyarrow as pa
import pyarrow.orc

from migrate.data.place import Broken
from migrate.encoding.wire import fields, message, number
from migrate.storage.sources import opened
from semisync.common.errors import BadInput

_STRIPES, _ROWS = 3, 5  # fields of Footer and of StripeInformation
_CODECS = {"UNCOMPRESSED": "", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4_raw", "ZSTD": "zstd"}


def survey(path: str, size: int) -> Tuple[Any, List[int]]:
    """The Arrow schema of the file, and the rows of each stripe."""
    with opened(path) as source:
        file = pyarrow.orc.ORCFile(source)
        start = size - 1 - file.file_postscript_length - file.file_footer_length
        source.seek(start)
        stored = source.read(file.file_footer_length)
        rows = _rows(memoryview(_decompressed(stored, file, path)), path)
        if len(rows) != file.nstripes or sum(rows) != file.nrows:
            raise Broken(f"{path}: its footer lists {rows} rows by stripe, and {file.nrows} in all")
        return file.schema, rows


def read(path: str, block: int, names: Sequence[str]) -> Dict[str, Any]:
    """The named columns of a stripe, as Arrow arrays."""
    with opened(path) as source:
        batch = pyarrow.orc.ORCFile(source).read_stripe(block, columns=list(names))
    return {name: batch[name] for name in names}


def _rows(footer: memoryview, path: str) -> List[int]:
    where = f"{path}: its footer"
    rows = []
    try:
        for field, stripe in fields(footer, where):
            if field == _STRIPES:
                found = dict(fields(message(stripe, where), where))
                rows.append(number(found.get(_ROWS, 0), where))
    except BadInput as error:
        raise Broken(str(error)) from error
    return rows


def _decompressed(stored: bytes, file: Any, path: str) -> bytes:
    """The footer's bytes; a chunk has at most the file's compression size."""
    codec = _CODECS.get(file.compression)
    if codec is None:
        raise Broken(f"{path} is compressed by {file.compression}; expected: {', '.join(_CODECS)}")
    if not codec:
        return stored
    parts, at = [], 0
    while at + 3 <= len(stored):
        header = int.from_bytes(stored[at : at + 3], "little")
        chunk = stored[at + 3 : at + 3 + (header >> 1)]
        parts.append(chunk if header & 1 else _chunk(chunk, codec, file.compression_size))
        at += 3 + (header >> 1)
    return b"".join(parts)


def _chunk(chunk: bytes, codec: str, most: int) -> bytes:
    """A chunk decompressed to at most `most` bytes; an exception where it is damaged."""
    if codec == "zlib":
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(chunk, most)
    if codec == "zstd":
        whole: bytes = pa.CompressedInputStream(pa.BufferReader(chunk), codec).read(most)
        return whole
    # The chunk does not say how long it becomes; pyarrow succeeds from that length on.
    found: bytes = pa.decompress(chunk, most, codec=codec, asbytes=True)
    too_short, enough = -1, most
    while enough - too_short > 1:
        middle = (too_short + enough) // 2
        try:
            found, enough = pa.decompress(chunk, middle, codec=codec, asbytes=True), middle
        except (pa.ArrowException, OSError):
            too_short = middle
    return found
