"""The share of a tensor that one thread compares at a time, and how it does."""

from __future__ import annotations

import hashlib
import json
import math
import random
from dataclasses import asdict
from functools import partial
from typing import Iterator, NamedTuple, Optional, Sequence, Tuple

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import rows_of
from migrate.manifest.manifest import Written
from migrate.manifest.transforms import named
from migrate.targets.reading import FileReader, Reader
from migrate.verification.expected import as_bytes, expected_rows
from migrate.verification.findings import Verification
from semisync.common import json_text
from semisync.common.errors import BadInput
from semisync.storage.remote import Unreachable
from semisync.storage.threads import PerThread, default_count, in_threads

OF_IDS = ("hashed", "file")  # prefixes of the roles of hash tables' tensors
_BLOCK = 16 << 20  # bytes of the source read at a time


class Share(NamedTuple):
    """A thread's unit of comparison: rows first..first+rows of a tensor.

    Attributes:
        sha256: of their bytes in the target, as the manifest has it; None where rows are drawn.
    """

    written: Written
    first: int
    rows: int
    sha256: Optional[str]


class Found(NamedTuple):
    """The findings in a share.

    Attributes:
        part: its number.
    """

    part: int
    result: Verification


def found_line(found: Found) -> str:
    """A line of a journal, with its newline."""
    return json.dumps({"part": found.part, "result": asdict(found.result)}) + "\n"


def found_from(line: str) -> Found:
    """The findings in a line that `found_line` wrote."""
    data = json_text.loads(line)
    return Found(data["part"], Verification(**data["result"]))


class _Sides:
    """One thread's open readers."""

    def __init__(self, checkpoint: Checkpoint, reader: Reader) -> None:
        self.checkpoint = checkpoint.reopened()
        self.reader = reader.reopened()

    def __enter__(self) -> _Sides:
        return self

    def __exit__(self, *_: object) -> None:
        self.checkpoint.close()


def shares_of(written: Written, result: Verification) -> Iterator[Share]:
    """The parts of a tensor to compare: pieces with hashes in the manifest, or sampled rows."""
    rows = rows_of(written.shape)
    if result.sample is not None and result.sample < rows:
        result.drew(result.sample)
        yield Share(written, 0, rows, None)
        return
    expected = 0
    for piece in written.pieces:
        if piece.first != expected:
            break
        expected += piece.rows
        yield Share(written, piece.first, piece.rows, piece.sha256)
    if expected != rows and all(written.shape):
        result.differs(f"{written.fqn!r}: the manifest has hashes of {expected} of {rows} rows")


def reader_of(written: Written, reader: Reader, result: Verification) -> Reader:
    """The reader of a tensor, which may be a file of its own."""
    if written.role.startswith("file"):
        return FileReader(result.directory, written)
    return reader


def compare_shares(
    checkpoint: Checkpoint,
    reader: Reader,
    result: Verification,
    shares: Sequence[Share],
    workers: Optional[int],
    numbers: Sequence[int],
) -> Iterator[Found]:
    """The findings in the shares of these numbers, in any order."""
    count = workers or default_count(checkpoint.prefix, result.directory)
    numbered = ((number, shares[number]) for number in numbers)
    with PerThread(lambda: _Sides(checkpoint, reader)) as sides:
        for several in in_threads(partial(compare_share, sides, result), numbered, count):
            yield from several


def compare_share(
    sides: PerThread[_Sides], whole: Verification, numbered: Tuple[int, Share]
) -> Found:
    """The findings in a share of this number."""
    number, share = numbered
    result = Verification(whole.source, whole.directory, whole.sample)
    try:
        if share.sha256 is None:
            assert whole.sample is not None
            drawn = random.SystemRandom().sample(range(share.rows), whole.sample)
            for row in sorted(drawn):
                _compare_rows(sides.get(), share.written, row, 1, result)
        else:
            _compare_all(sides.get(), share, result)
    except Unreachable:  # a BadInput that says nothing of the data
        raise
    except BadInput as error:
        result.differs(f"{share.written.fqn!r}: {error}")
    return Found(number, result)


def _compare_all(sides: _Sides, share: Share, result: Verification) -> None:
    written, digest = share.written, hashlib.sha256()
    rows = rows_of(written.shape)
    if written.role.startswith(OF_IDS):  # here the SHA-256 alone
        reader = reader_of(written, sides.reader, result)
        # An upper bound: ids and versions have 8 bytes, the values of rows mostly 4.
        row_bytes = max(math.prod(written.shape[1:]) * 8, 1)
        for first, count in _blocks(share.first, share.rows, row_bytes):
            digest.update(as_bytes(reader.rows(written.fqn, first, count)).data)
    else:
        row_bytes = max(sides.checkpoint[written.source].nbytes // max(rows, 1), 1)
        for first, count in _blocks(share.first, share.rows, row_bytes):
            data = _compare_rows(sides, written, first, count, result)
            digest.update(data.data)
    result.hashes += 1
    if digest.hexdigest() != share.sha256:
        result.differs(
            f"{written.fqn!r}, rows {share.first} to {share.first + share.rows - 1}: SHA-256 "
            f"{digest.hexdigest()}, the manifest has {share.sha256}"
        )


def _blocks(first: int, rows: int, row_bytes: int) -> Iterator[Tuple[int, int]]:
    step = max(_BLOCK // row_bytes, 1)
    for start in range(first, first + rows, step):
        yield start, min(step, first + rows - start)


def _compare_rows(
    sides: _Sides, written: Written, first: int, count: int, result: Verification
) -> numpy.ndarray:
    """Compares these rows; returns the target's bytes, [rows, bytes a row]."""
    stored = as_bytes(sides.reader.rows(written.fqn, first, count))
    expected = expected_rows(sides.checkpoint, written, first, count)
    result.rows += count
    if not named(written.transform).exact:
        values, means = (data.view(numpy.float32)[:, 0] for data in (stored, as_bytes(expected)))
        # Means in float64, summed in any order, round to the same float32 or to neighbours, which
        # are at most 2^-23 apart: twice that is allowed.
        different = ~numpy.isclose(values, means, rtol=2.0**-22, atol=0.0, equal_nan=True)
    else:
        wanted = as_bytes(expected)
        if _equal(stored, wanted):
            return stored
        different = (stored != wanted).any(axis=1)
    if different.any():
        result.differing_rows += int(different.sum())
        row = first + int(different.argmax())
        result.differs(
            f"{written.fqn!r}: {int(different.sum())} of the rows {first} to {first + count - 1} "
            f"differ from {written.source!r}, the first is row {row}"
        )
    return stored


def _equal(stored: numpy.ndarray, wanted: numpy.ndarray) -> bool:
    """Whether the bytes are the same, compared eight at a time where they are many."""
    if stored.nbytes % 8 == 0 and stored.shape == wanted.shape:
        stored, wanted = (data.reshape(-1).view(numpy.uint64) for data in (stored, wanted))
    return numpy.array_equal(stored, wanted)
