"""ORC: a block is a stripe.

pyarrow does not tell the rows of a stripe, so they are read from the footer: a protobuf message,
perhaps compressed in chunks, each with a header of 3 bytes: its length times two, plus 1 where it
stands as it is. Source: https://orc.apache.org/specification/ORCv1, "File Tail" and "Compression".
"""

import zlib
from typing import Any, Iterator, List, Optional, Sequence

import pyarrow as pa
import pyarrow.orc

from parity.io.damage import Broken
from parity.io.formats.file import Columns
from semisync.common.errors import BadInput
from semisync.encoding.wire import fields, message, number
from semisync.storage.sources import opened

_STRIPES, _ROWS = 3, 5  # fields of Footer and of StripeInformation
# ORC's LZ4 is the raw block format.
_CODECS = {"UNCOMPRESSED": "", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4_raw", "ZSTD": "zstd"}


class Orc:
    """An ORC file."""

    def __init__(self, path: str) -> None:
        self._path, self._source = path, opened(path)
        self._file: Any = pyarrow.orc.ORCFile(self._source)
        self.schema: pa.Schema = self._file.schema
        self.columns: Optional[List[str]] = self.schema.names
        self.rows: Optional[int] = int(self._file.nrows)

    def holds_rows(self) -> bool:
        """Whether there is a row."""
        return bool(self.rows)

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The rows in tables of a stripe each."""
        if not self._file.nstripes:
            yield self._file.read(columns=list(columns.names))
        for k in range(self._file.nstripes):
            yield self.block(k, columns.names)

    def block_rows(self) -> List[int]:
        """The rows of each stripe."""
        file, path = self._file, self._path
        size = self._source.size()
        # The file ends with its footer, its postscript, and one byte: the postscript's length.
        self._source.seek(size - 1 - file.file_postscript_length - file.file_footer_length)
        stored = self._source.read(file.file_footer_length)
        rows = _rows(memoryview(_decompressed(stored, file, path)), path)
        if len(rows) != file.nstripes or sum(rows) != file.nrows:
            raise Broken(f"{path}: its footer lists {rows} rows by stripe, and {file.nrows} in all")
        return rows

    def block(self, number: int, names: Sequence[str]) -> pa.Table:
        """The named columns of a stripe."""
        return pa.Table.from_batches([self._file.read_stripe(number, columns=list(names))])


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
        # ORC's zlib is raw deflate, without a header.
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
