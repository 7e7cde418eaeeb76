"""A DeepRec incremental checkpoint laid over the full one that it belongs to.

    X                              a whole variable, in slices if it is partitioned
    X-sparse_incr_keys [n]         numbers of the rows that were updated, ascending
    X-sparse_incr_values [n, dim]  the rows' present values, float32

For rows of a partitioned variable, X is the name of the part, `user/part_0`, and the rows are
numbered within it.

1. DeepRec writes rows of a variable that is looked up if its saver has
   incremental_include_normal_var, otherwise whole variables. A variable of which the increment has
   neither cannot be restored from it: it is refused, as is anything that does not fit the full one.
2. EmbeddingVariables have rows by ids; `migrate.hash_tables.deeprec` lays those.
3. The changed rows are verified once, when the increment is laid; later reads take only those that
   they need. Memory: the numbers of the changed rows, 8 bytes each.

Source: DeepRec's incr_save_restore_ops.{h,cc} (DumpSparseNormalTensor, IncrRestore), saver.py
(_GetTensorNameAndIsSparse), incremental_saver.py. These sources are all that was read: no file that
DeepRec wrote.
"""

from __future__ import annotations

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Set

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import row_blocks, rows_before
from migrate.checkpoint.rows import RowReader, Span
from migrate.checkpoint.tensor_info import TensorInfo
from semisync.common.errors import BadInput

KEYS, VALUES = "-sparse_incr_keys", "-sparse_incr_values"

_OF_ROWS = re.compile(r"-(sparse_incr_(keys|values|versions|freqs)|incr_partition_offset)$")
_PART = re.compile(r"/part_(\d+)(?=/|$)")


class Changed(NamedTuple):
    """The changed rows of one partition.

    Attributes:
        first: its first row in the variable.
        number, parts: which partition of how many it is.
        keys: rows within it, ascending [n] int64.
        values: name of the tensor with their present values.
    """

    first: int
    number: int
    parts: int
    keys: numpy.ndarray
    values: str


class Overlaid(Checkpoint):
    """The checkpoint `full` updated by `newer`'s variables, with `full`'s prefix and all files.

    Mapping, `read`, `chunks`, `reader` and `verify` behave as those of a Checkpoint.

    Args:
        tables: names before `-keys` of the hash tables in `full`, whose tensors are left alone.

    Raises:
        BadInput: `newer` is not an increment of `full`.
    """

    def __init__(self, full: Checkpoint, newer: Checkpoint, tables: Sequence[str]) -> None:
        super().__init__(full.prefix, full.stored, full.store)
        self.newer: Checkpoint = newer
        self._whole: Set[str] = set()
        self._changed: Dict[str, List[Changed]] = {}
        of_tables = tuple(f"{table}-" for table in tables)
        parts = _parts(newer)
        for name, info in full.items():
            # EmbeddingVariables: their rows are laid by id (`migrate.hash_tables.deeprec`).
            if name.startswith(of_tables):
                continue
            if name in newer:
                self._replace(name, info)
            elif name in parts:
                self._changed[name] = _changed(newer, name, info, parts.pop(name))
            else:
                raise BadInput(
                    f"{newer.prefix} has neither {name!r} nor rows of it: it is not an increment "
                    f"of {full.prefix}"
                )
        # By the names of whole variables, as `parts` has them.
        known = {*full, *(_variable(table) for table in tables)}
        whole = {name for name in newer if not _OF_ROWS.search(name)}
        # What no variable took above is left in `parts`; rows of hash tables are in `known`.
        strange = sorted((whole | set(parts)) - known)
        if strange:
            raise BadInput(
                f"{newer.prefix} has {strange[0]!r}, which is not in {full.prefix}: it is not "
                "an increment of it"
            )

    def close(self) -> None:
        """Closes the data files of both."""
        super().close()
        self.newer.close()

    def reopened(self) -> Checkpoint:
        """As Checkpoint.reopened."""
        other = super().reopened()
        other.newer = self.newer.reopened()
        return other

    def shard_paths(self) -> List[str]:
        """Paths of the data files of both, and of the index of the newer one."""
        return [*super().shard_paths(), self.newer.prefix + ".index", *self.newer.shard_paths()]

    def read(self, name: str, rows: Optional[slice] = None) -> numpy.ndarray:
        """As Checkpoint.read."""
        if name in self._whole:
            return self.newer.read(name, rows)
        out = super().read(name, rows)
        if name in self._changed:
            first, _, _ = (rows or slice(None)).indices(self[name].shape[0])
            self.lay(name, False, first, out)
        return out

    def verify(self, name: str) -> None:
        """As Checkpoint.verify."""
        if name in self._whole:
            self.newer.verify(name)
        else:
            super().verify(name)

    def reader(self, name: str, interleave: bool = False, first: int = 0) -> RowReader:
        """As Checkpoint.reader."""
        if name in self._whole:
            return self.newer.reader(name, interleave, first)
        reader = super().reader(name, interleave, first)
        return _Reader(self, name, interleave, first, reader) if name in self._changed else reader

    def check_spans(self, name: str, spans: Sequence[Span]) -> None:
        """As Checkpoint.check_spans."""
        if name in self._whole:
            self.newer.check_spans(name, spans)
        else:
            super().check_spans(name, spans)

    def lay(self, name: str, interleave: bool, first: int, out: numpy.ndarray) -> None:
        """Puts the changed rows into `out`, rows `first`.. of `name`, dealt out in turn or not."""
        for part in self._changed[name]:
            start, step = (part.number, part.parts) if interleave else (part.first, 1)
            # Row k of this part is row start + step * k of the result.
            ends = [rows_before(start, step, row) for row in (first, first + len(out))]
            begin, end = numpy.searchsorted(part.keys, ends)
            if begin < end:
                at = start + step * part.keys[begin:end] - first
                out[at] = self.newer.read(part.values, rows=slice(int(begin), int(end)))

    def _replace(self, name: str, info: TensorInfo) -> None:
        there = self.newer[name]
        if (there.dtype, there.shape) != (info.dtype, info.shape):
            raise BadInput(
                f"{self.newer.prefix} has {name!r} as {there.dtype} {list(there.shape)}, "
                f"{self.prefix} as {info.dtype} {list(info.shape)}"
            )
        self._whole.add(name)
        self._infos = {**self._infos, name: there._replace(kind=info.kind)}


class _Reader(RowReader):
    """Reads a variable's rows from the full checkpoint and lays the changed ones over them."""

    def __init__(
        self, overlaid: Overlaid, name: str, interleave: bool, first: int, full: RowReader
    ) -> None:
        self._overlaid, self._name, self._interleave = overlaid, name, interleave
        self._next, self._full = first, full

    def fill(self, out: numpy.ndarray) -> None:
        """As RowReader.fill."""
        self._full.fill(out)
        self._overlaid.lay(self._name, self._interleave, self._next, out)
        self._next += len(out)

    def spans(self) -> List[Span]:
        """The bytes read of the full checkpoint."""
        return self._full.spans()


def _variable(stem: str) -> str:
    """`user/part_0/Adagrad` -> `user/Adagrad`, the name of the whole."""
    return _PART.sub("", stem, count=1)


def _parts(newer: Checkpoint) -> Dict[str, List[str]]:
    """The parts' names before `-sparse_incr_keys`, by the name of their variable."""
    stems: Dict[str, List[str]] = {}
    for name in newer:
        if name.endswith(KEYS):
            stem = name[: -len(KEYS)]
            stems.setdefault(_variable(stem), []).append(stem)
    return stems


def _changed(newer: Checkpoint, name: str, info: TensorInfo, stems: List[str]) -> List[Changed]:
    """The changed rows of the variable `name`, part by part."""
    where = f"{newer.prefix}: rows of {name!r}"
    if info.dtype != "float32" or len(info.shape) != 2:
        raise BadInput(
            f"{where}: it is {info.dtype} {list(info.shape)}, and DeepRec writes rows of float32 "
            "[rows, dim] alone"
        )
    if any(piece.shape[1] != info.shape[1] for piece in info.slices):
        raise BadInput(f"{where}: it is partitioned by columns, which the rows do not tell apart")
    blocks = row_blocks(info, name)
    matches = {stem: _PART.search(stem) for stem in stems}
    by_number = {int(match[1]) if match else None: stem for stem, match in matches.items()}
    # By text, since None, an undivided variable, does not compare with numbers.
    if sorted(by_number, key=str) != sorted(range(len(blocks)) if info.slices else [None], key=str):
        expected = f"those of {len(blocks)} parts" if info.slices else "one whole"
        raise BadInput(f"{where}: they are of {', '.join(sorted(stems))}, expected {expected}")
    changed = []
    for number, (first, rows) in enumerate(blocks):
        stem = by_number[number if info.slices else None]
        _check_tensors(newer, stem, info.shape[1], where)
        keys = newer.read(stem + KEYS).astype(numpy.int64)
        if len(keys) and (keys[0] < 0 or keys[-1] >= rows or (numpy.diff(keys) <= 0).any()):
            raise BadInput(f"{where}: {stem + KEYS!r} are not ascending rows below {rows}")
        # Once and as a whole: `lay` reads ranges, which cannot check a crc of all rows.
        newer.verify(stem + VALUES)
        changed.append(Changed(first, number, len(blocks), keys, stem + VALUES))
    return changed


def _check_tensors(newer: Checkpoint, stem: str, dim: int, where: str) -> None:
    keys, values = newer[stem + KEYS], newer.get(stem + VALUES)
    said = (values.dtype, values.shape) if values else None
    fits = len(keys.shape) == 1 and said == ("float32", (*keys.shape, dim))
    if keys.dtype not in ("int32", "int64") or not fits:
        raise BadInput(
            f"{where}: {stem + KEYS!r} is {keys.dtype} {list(keys.shape)}, and its values are "
            f"{f'{said[0]} {list(said[1])}' if said else 'not there'}, expected float32 [n, {dim}]"
        )
