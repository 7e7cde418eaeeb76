"""Does a converted directory hold what the checkpoint holds? Both sides are read anew.

1. The manifest says what each tensor of the target is made from, and how.
2. Source: each id's row is looked up as TensorFlow would, partition by partition, with range reads.
   Target: rows are read by the format's own metadata (`migrate.targets.reading`).
3. Every value must agree in every bit. A cast is made again, by torch, 8-bit rows by FBGEMM; the
   mean of a row may differ by the rounding of its last bit, since the order of the sum is not
   defined.
4. The bytes of the target must have the manifest's SHA-256, unless only a sample is read.
5. Hash tables are compared id by id (`migrate.ids.comparing`).
6. Every tensor of the checkpoint must be accounted for: written, or dropped with a reason.
7. The manifest must have its own SHA-256, and `model.json` the tables as they are; what else was
   edited in that is a note.

A sample of n rows that all agree says, with confidence c, that at most 1 - (1 - c)^(1/n) of the
rows of the tensor differ (the exact binomial bound for no failure in n draws).
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Iterator, List, NamedTuple, Optional, Set, Tuple

import numpy
import torch

from migrate import models
from migrate.ids.comparing import as_bytes, compare_table
from migrate.manifest import Manifest, Written, is_intact, read_manifest
from migrate.quantization import HEAD
from migrate.sources.bundle import Checkpoint, open_checkpoint
from migrate.sources.dtypes import BFLOAT16, BY_NAME
from migrate.sources.info import row_blocks
from migrate.tables import hash_tables
from migrate.targets.reading import FileReader, Reader, open_target
from migrate.threads import PerThread, default_count, in_threads
from semisync.errors import BadInput, UsageError

CONFIDENCE = 0.95
_BLOCK = 16 << 20  # bytes of the source read at a time
_OF_IDS = ("hashed", "file")  # how the roles begin of what is written of hash tables
_MAX_NAMED = 20  # differences that are named one by one


@dataclass
class Verification:
    """What was compared, and what differs.

    tensors, rows   how many were compared; differing_rows: how many of the rows differ
    sample          rows of each tensor that were drawn, None for all
    hashes          pieces whose SHA-256 was checked
    bound           largest fraction of a tensor's rows that may still differ, at `confidence`
    differences     one sentence each, the first _MAX_NAMED
    notes           what is no difference, but to be known
    """

    source: str
    directory: str
    sample: Optional[int] = None
    tensors: int = 0
    rows: int = 0
    hashes: int = 0
    differing_rows: int = 0
    bound: float = 0.0
    confidence: float = CONFIDENCE
    differences: List[str] = field(default_factory=list)
    notes: List[str] = field(default_factory=list)

    @property
    def verified(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    def add(self, other: Verification) -> None:
        """Takes in what was found in further rows."""
        self.rows += other.rows
        self.hashes += other.hashes
        self.differing_rows += other.differing_rows
        for sentence in other.differences:
            self.differs(sentence)

    def differs(self, sentence: str) -> None:
        """Notes a difference."""
        if len(self.differences) < _MAX_NAMED:
            self.differences.append(sentence)


class Share(NamedTuple):
    """What one thread compares at a time: rows first..first+rows of a tensor.

    sha256: of their bytes in the target, as the manifest has it; None where rows are drawn.
    """

    written: Written
    first: int
    rows: int
    sha256: Optional[str]


def verify(
    prefix: str, directory: str, sample: Optional[int] = None, workers: Optional[int] = None
) -> Verification:
    """Compares the converted `directory` with the checkpoint `prefix`, row by row, slot by slot.

    sample: rows of each tensor to draw at random; all without it. workers: threads; without it
    one a processor, at most four. Raises BadInput where the manifest or the checkpoint cannot be
    read; whatever else is wrong is a difference.
    """
    if sample is not None and sample < 1:
        raise UsageError(f"sample is {sample}, expected at least one row")
    directory = os.fspath(directory)
    manifest = read_manifest(directory)
    with open_checkpoint(prefix, newer=manifest.newer) as checkpoint:
        return compare(checkpoint, manifest, directory, sample, workers)


def compare(
    checkpoint: Checkpoint,
    manifest: Manifest,
    directory: str,
    sample: Optional[int] = None,
    workers: Optional[int] = None,
) -> Verification:
    """As `verify`, for an open checkpoint."""
    result = Verification(checkpoint.prefix, directory, sample)
    _check_beside(directory, manifest, result)
    _check_accounts(checkpoint, manifest, result)
    try:
        reader = open_target(directory, manifest.target)
    except BadInput as error:
        result.differs(str(error))
        return result
    for extra in sorted(set(reader.tensors) - {written.fqn for written in manifest.tensors}):
        result.differs(f"{extra!r} is in the target, but not in the manifest")
    shares: List[Share] = []
    broken: Set[str] = set()
    for written in manifest.tensors:
        if written.role.startswith(_OF_IDS):
            if not _check_stored(written, _reader(written, reader, result), result):
                broken.add(written.fqn)
            elif sample is None:
                shares += _shares(written, result)
        elif _check_kind(checkpoint, written, reader, result):
            result.tensors += 1
            shares += _shares(written, result)
    with PerThread(lambda: _Sides(checkpoint, reader)) as sides:
        compare_one = partial(_compare_share, sides, result)
        found = in_threads(compare_one, enumerate(shares), workers or default_count())
        for _, one in sorted(chain.from_iterable(found), key=itemgetter(0)):
            result.add(one)
    if any(table.ids is not None for table in manifest.tables):
        _compare_hashed(checkpoint, manifest, reader, broken, result)
    return result


def _compare_hashed(
    checkpoint: Checkpoint,
    manifest: Manifest,
    reader: Reader,
    broken: Set[str],
    result: Verification,
) -> None:
    """The hash tables, id by id, but for those of which something is `broken`: that is noted."""
    sources = hash_tables(checkpoint, manifest.meta)
    for table in manifest.tables:
        if table.ids is None or not broken.isdisjoint(table.ids.columns):
            continue
        if table.ids.table not in sources:
            result.differs(f"the source has no hash table {table.ids.table!r}")
            continue
        try:
            found = compare_table(
                sources[table.ids.table],
                table,
                manifest,
                lambda written: _reader(written, reader, result).reopened(),
                result.differs,
                result.sample,
            )
        except BadInput as error:
            result.differs(f"table {table.name!r}: {error}")
            continue
        result.rows += found.rows
        result.tensors += found.tensors
        result.differing_rows += found.differing
        if result.sample is not None and found.rows:
            drawn = found.rows // found.tensors
            result.bound = max(result.bound, 1 - (1 - CONFIDENCE) ** (1 / drawn))


def _reader(written: Written, reader: Reader, result: Verification) -> Reader:
    """What reads it, which may be a file of its own."""
    if written.role.startswith("file"):
        return FileReader(result.directory, written)
    return reader


class _Sides:
    """What one thread has open."""

    def __init__(self, checkpoint: Checkpoint, reader: Reader) -> None:
        self.checkpoint = checkpoint.reopened()
        self.reader = reader.reopened()

    def __enter__(self) -> _Sides:
        return self

    def __exit__(self, *_: object) -> None:
        self.checkpoint.close()


def _check_beside(directory: str, manifest: Manifest, result: Verification) -> None:
    """The files that stand beside the data."""
    if not is_intact(directory):
        result.differs("manifest.json is not as it was written: it has not its own SHA-256")
    try:
        config = models.read_model(directory)
    except BadInput as error:
        result.differs(str(error))
        return
    if models.contradicts(config, manifest):
        result.differs(f"{models.FILE} has a table that is not so in the manifest")
    elif json.dumps(config) != json.dumps(models.model_config(manifest)):
        result.notes.append(f"{models.FILE} is not as it was written, but edited since")


def _check_accounts(checkpoint: Checkpoint, manifest: Manifest, result: Verification) -> None:
    written = manifest.sources()
    for name in checkpoint:
        if name not in written and name not in manifest.dropped:
            result.differs(f"{name!r} was neither written nor dropped with a reason")


def _check_kind(
    checkpoint: Checkpoint, written: Written, reader: Reader, result: Verification
) -> bool:
    """Whether source and target have the tensor as the manifest says."""
    if not _check_stored(written, reader, result):
        return False
    info = checkpoint.get(written.source)
    if info is None:
        result.differs(f"{written.fqn!r} is made from {written.source!r}, which is not there")
        return False
    shape = list(info.shape)
    if written.transform == "row_mean":
        shape = shape[:1]
    elif written.transform == "int8":
        shape = [shape[0], HEAD + shape[1]]
    if shape != written.shape:
        result.differs(f"{written.fqn!r} is {written.shape}, but {written.source!r} {shape}")
        return False
    return True


def _check_stored(written: Written, reader: Reader, result: Verification) -> bool:
    """Whether the target has the tensor as the manifest says."""
    stored = reader.tensors.get(written.fqn)
    if stored is None:
        result.differs(f"{written.fqn!r} is in the manifest, but not in the target")
        return False
    if (list(stored.shape), stored.dtype) != (written.shape, written.dtype):
        result.differs(
            f"{written.fqn!r} is {written.dtype} {written.shape} in the manifest, "
            f"{stored.dtype} {list(stored.shape)} in the target"
        )
        return False
    return True


def _shares(written: Written, result: Verification) -> Iterator[Share]:
    """What is to be compared of a tensor: the pieces that the manifest has hashes of, or, for a
    sample, some rows."""
    rows = written.shape[0] if written.shape else 1
    if result.sample is not None and result.sample < rows:
        result.bound = max(result.bound, 1 - (1 - CONFIDENCE) ** (1 / result.sample))
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


def _compare_share(
    sides: PerThread[_Sides], whole: Verification, numbered: Tuple[int, Share]
) -> Tuple[int, Verification]:
    """(number of the share, what was found in it)"""
    number, share = numbered
    found = Verification(whole.source, whole.directory, whole.sample)
    try:
        if share.sha256 is None:
            assert whole.sample is not None
            drawn = random.SystemRandom().sample(range(share.rows), whole.sample)
            for row in sorted(drawn):
                _compare_rows(sides.get(), share.written, row, 1, found)
        else:
            _compare_all(sides.get(), share, found)
    except BadInput as error:
        found.differs(f"{share.written.fqn!r}: {error}")
    return number, found


def _compare_all(sides: _Sides, share: Share, result: Verification) -> None:
    written, digest = share.written, hashlib.sha256()
    rows = written.shape[0] if written.shape else 1
    if written.role.startswith(_OF_IDS):  # here the SHA-256 alone
        reader = _reader(written, sides.reader, result)
        row_bytes = max(math.prod(written.shape[1:]) * 8, 1)
        for first, count in _blocks(share.first, share.rows, row_bytes):
            digest.update(as_bytes(reader.rows(written.fqn, first, count)).data)
    else:
        row_bytes = max(sides.checkpoint[written.source].nbytes // max(rows, 1), 1)
        for first, count in _blocks(share.first, share.rows, row_bytes):
            found = _compare_rows(sides, written, first, count, result)
            digest.update(found.data)
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
    found = as_bytes(sides.reader.rows(written.fqn, first, count))
    expected = _expected(sides.checkpoint, written, first, count)
    result.rows += count
    if written.transform == "row_mean":
        values, means = (one.view(numpy.float32)[:, 0] for one in (found, as_bytes(expected)))
        different = ~numpy.isclose(values, means, rtol=2.0**-22, atol=0.0, equal_nan=True)
    else:
        wanted = as_bytes(expected)
        if _equal(found, wanted):
            return found
        different = (found != wanted).any(axis=1)
    if different.any():
        result.differing_rows += int(different.sum())
        row = first + int(different.argmax())
        result.differs(
            f"{written.fqn!r}: {int(different.sum())} of the rows {first} to {first + count - 1} "
            f"differ from {written.source!r}, the first is row {row}"
        )
    return found


def _equal(found: numpy.ndarray, wanted: numpy.ndarray) -> bool:
    """Whether the bytes are the same, compared eight at a time where they are many."""
    if found.nbytes % 8 == 0 and found.shape == wanted.shape:
        found, wanted = (one.reshape(-1).view(numpy.uint64) for one in (found, wanted))
    return numpy.array_equal(found, wanted)


def _expected(checkpoint: Checkpoint, written: Written, first: int, count: int) -> torch.Tensor:
    """The rows that the target should have, from the source."""
    dtype = getattr(torch, written.dtype)
    if written.value is not None:
        return torch.full((1,), written.value, dtype=dtype)
    values = _source_rows(checkpoint, written, first, count)
    if written.transform == "row_mean":
        return values.double().reshape(count, -1).mean(1).to(dtype)
    if written.transform == "int8":
        return _quantized(values)
    return values.to(dtype) if written.transform == "cast" else values


def _quantized(values: torch.Tensor) -> torch.Tensor:
    """FBGEMM's own 8-bit rows, scale and bias put first."""
    import fbgemm_gpu  # noqa: F401  it registers the operator

    fused = torch.ops.fbgemm.FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf(values.float(), 8)
    return torch.cat([fused[:, -HEAD:], fused[:, :-HEAD]], dim=1)


def _source_rows(checkpoint: Checkpoint, written: Written, first: int, count: int) -> torch.Tensor:
    name = written.source
    info = checkpoint[name]
    if not info.shape:
        return _tensor(checkpoint.read(name).reshape(1))
    if written.partition_strategy != "mod":
        return _tensor(checkpoint.read(name, rows=slice(first, first + count)))
    blocks = row_blocks(info, name)
    ids = numpy.arange(first, first + count)
    out = numpy.empty((count, *info.shape[1:]), BY_NAME[info.dtype].array)
    for part, (start, _) in enumerate(blocks):
        mine = slice((part - first) % len(blocks), count, len(blocks))
        local = ids[mine] // len(blocks)
        if len(local):
            rows = slice(start + int(local[0]), start + int(local[-1]) + 1)
            out[mine] = checkpoint.read(name, rows=rows)
    return _tensor(out)


def _tensor(values: numpy.ndarray) -> torch.Tensor:
    if values.dtype == BFLOAT16:
        return torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)
