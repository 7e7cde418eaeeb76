"""The columns of TFRecord files of tf.train.Example, without TensorFlow.

An Example is a map from feature name to a list of bytes, floats or int64s. Whoever compares scores
reads columns of values: a feature with exactly one value in every record. Whoever scores a model or
trains one reads columns of lists where a record has several. `semisync.encoding.tfrecord` checks
the records, `semisync.common.compiled.example` finds their features as TensorFlow's ParseExample
does.
"""

import importlib
from typing import (
    Any,
    Callable,
    Collection,
    Dict,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Tuple,
)

import numpy as np
import pyarrow as pa

from parity.io.formats.file import Columns
from semisync.common.errors import BadInput
from semisync.common.extras import extra
from semisync.encoding.tfrecord import pieces_of
from semisync.storage.sources import streamed

_TOGETHER = 1 << 16  # records in a table


class Records(NamedTuple):
    """Examples of a file: record i is data[starts[i] : ends[i]].

    Attributes:
        path: of the file.
        first: the number of the first record in it, from 1.
        data: uint8; the others are int64.
    """

    path: str
    first: int
    data: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    def names(self) -> List[str]:
        """The features that some record has, sorted.

        Raises:
            BadInput: a record that is not an Example.
        """
        from semisync.common.compiled import example

        found, broken = example.names(self.data, self.starts, self.ends)
        self._refuse(broken)
        spans = [bytes(self.data[start:end]) for start, end in found.tolist()]
        return sorted(span.decode(errors="replace") for span in spans)

    def features(self, names: Sequence[str]) -> Dict[str, "Feature"]:
        """The values of these features, by name.

        Raises:
            BadInput: a record that is not an Example, or a feature that is broken or a list of
                another kind than in the records before; the message has the record's number.
        """
        from semisync.common.compiled import example, feature_lists

        text = [name.encode() for name in names]
        ends = np.cumsum([0, *map(len, text)], dtype=np.int64)
        asked = np.frombuffer(b"".join(text), np.uint8)
        keeps_empty = np.zeros(len(names), bool)
        found = example.find(self.data, self.starts, self.ends, asked, ends, keeps_empty)
        self._refuse(found.broken)
        read = feature_lists.values(self.data, found, found.kinds)
        return {
            name: Feature(self, name, kind, *lists)
            for name, kind, lists in zip(names, found.kinds.tolist(), read)
        }

    def where(self, row: Any) -> str:
        """Names a record, by its row from 0."""
        return f"{self.path}: record {self.first + int(row)}"

    def _refuse(self, broken: int) -> None:
        if broken >= 0:
            raise BadInput(f"{self.where(broken)} is not a tf.train.Example; the file is damaged")


class Feature:
    """One feature of many records.

    Args:
        kind: of feature_lists, 0 if no record has a value.
        counts: int64, values of each record.
    """

    def __init__(
        self,
        records: Records,
        name: str,
        kind: int,
        counts: np.ndarray,
        bits: np.ndarray,
        ends: np.ndarray,
    ) -> None:
        from semisync.common.compiled import feature_lists

        self._data, self.kind, self._bits, self._ends = records.data, kind, bits, ends
        for wrong, what in (
            (feature_lists.BROKEN, "is damaged"),
            (feature_lists.OTHER_KIND, "holds values of another type than in the records before"),
        ):
            if (counts == wrong).any():
                where = records.where((counts == wrong).argmax())
                raise BadInput(f"{where}: feature {name!r} {what}")
        self.counts = np.maximum(counts, 0)

    def lists(self) -> Any:
        """A list per record; null for one without values."""
        if not self.kind:
            return pa.nulls(len(self.counts))
        offsets = np.concatenate([[0], np.cumsum(self.counts)])
        null = None if self.counts.all() else pa.array(self.counts == 0)
        return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), self._flat(), mask=null)

    def values(self) -> Any:
        """A value per record, null where there is none; of records with one value at most."""
        if not self.kind or self.counts.all():
            return self._flat()
        places = np.cumsum(self.counts) - 1
        return self._flat().take(pa.array(places, mask=self.counts == 0))

    def plain_where_possible(self) -> Any:
        """The `values`; the `lists` where a record has several values."""
        return self.values() if self.counts.max(initial=0) <= 1 else self.lists()

    def _flat(self) -> Any:
        """All values: binary, float32 or int64; null for all records where none has a value."""
        from semisync.common.compiled import feature_lists, spans

        if not self.kind:
            return pa.nulls(len(self.counts))
        if self.kind == feature_lists.INTEGERS:
            return pa.array(self._bits.view(np.int64))
        if self.kind == feature_lists.FLOATS:
            return pa.array(self._bits.astype(np.uint32).view(np.float32))  # in the low 32 bits
        starts, ends = self._bits.view(np.int64), np.ascontiguousarray(self._ends)
        data, offsets = spans.gather(self._data, starts, ends)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(starts), buffers).cast(pa.binary())


def records_in(
    read: Callable[[int], bytes], path: str, first: int = 1, size: int = 1 << 62
) -> Iterator[Records]:
    """The records of a file by `size`.

    Args:
        read: gives the next bytes, fewer than asked for only at the end.
        first: the number of the first record.

    Raises:
        BadInput: damage; the message names file and record.
        MissingExtra: without google-crc32c, numba.
    """
    with extra("report", f"to read {path}"):
        importlib.import_module("google_crc32c")  # which `pieces_of` imports for its first record
        importlib.import_module("numba")
    held: List[Tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # pieces of the next Records
    room = size
    for data, starts, ends in pieces_of(read, path, first):
        while len(starts):
            held.append((data, starts[:room], ends[:room]))
            taken = len(held[-1][1])
            room, starts, ends = room - taken, starts[taken:], ends[taken:]
            if not room:
                yield _joined(path, first, held)
                first, room = first + size, size
                held.clear()
    if held:
        yield _joined(path, first, held)


def _joined(
    path: str, first: int, pieces: Sequence[Tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> Records:
    if len(pieces) == 1:
        return Records(path, first, *pieces[0])
    # Of each piece only the span of these records is kept; offsets move with it.
    own = [(data[starts[0] : ends[-1]], starts[0]) for data, starts, ends in pieces]
    shifts = np.cumsum([0, *(len(data) for data, _ in own)]) - [*(at for _, at in own), 0]
    starts, ends = (
        np.concatenate([piece[k] + shift for piece, shift in zip(pieces, shifts)]) for k in (1, 2)
    )
    return Records(path, first, np.concatenate([data for data, _ in own]), starts, ends)


def read_records(path: str, size: int = _TOGETHER) -> Iterator[Records]:
    """The records of a file by `size`; errors as of `records_in`."""
    with streamed(path) as file:
        yield from records_in(file.read, path, size=size)


class TFRecords:
    """A TFRecord file of tf.train.Example."""

    rows: Optional[int] = None
    columns: Optional[List[str]] = None  # each record says which features it has

    def __init__(self, path: str) -> None:
        self._path = path

    def holds_rows(self) -> bool:
        """Whether there is a record; reads the first."""
        return next(read_records(self._path, 1), None) is not None

    def tables(self, columns: Columns, size: int) -> Iterator[pa.Table]:
        """The records in tables of many."""
        if columns.several:
            return tables_of_lists(self._path, columns.names, size, columns.optional)
        return tables_of_values(self._path, columns.names, columns.optional)


def tables_of_values(
    path: str, names: Sequence[str], optional: Collection[str] = ()
) -> Iterator[pa.Table]:
    """The named features, a row per record, in tables of many records; at least one table.

    A table lacks the column of an optional feature that none of its records has.

    Raises:
        BadInput: as `read_records`.
        BadInput: a feature that is not there or has other than one value.
    """
    empty = True
    for records in read_records(path, _TOGETHER):
        empty = False
        columns = {
            name: _column(records, name, feature, name in optional)
            for name, feature in records.features(names).items()
            if feature.kind or name not in optional
        }
        yield _table(records, columns)
    if empty:
        yield pa.table({name: pa.nulls(0, pa.int64()) for name in names if name not in optional})


def tables_of_lists(
    path: str, names: Sequence[str], size: int, optional: Collection[str] = ()
) -> Iterator[pa.Table]:
    """The named features, a row per record, in tables of `size` records; at least one table.

    A feature with at most one value in every record of a table is a plain column, any other a
    column of lists; a record without it has a missing value. A table lacks the column of an
    optional feature that none of its records has.

    Raises:
        BadInput: as `read_records`, or no record has a feature.
    """
    due = [name for name in names if name not in optional]
    some = False
    for records in read_records(path, size):
        found = records.features(names)
        if not some:
            _refuse_absent(path, records, [name for name in due if not found[name].kind])
        some = True
        columns = {
            name: one.plain_where_possible()
            for name, one in found.items()
            if one.kind or name not in optional
        }
        yield _table(records, columns)
    if not some:
        yield pa.table({name: pa.nulls(0) for name in due})


def _refuse_absent(path: str, first: Records, names: Sequence[str]) -> None:
    """Raises BadInput if no record has one of these features, which the first table lacks."""
    lacking = list(names)
    for records in read_records(path) if lacking else ():
        lacking = [name for name, one in records.features(lacking).items() if not one.kind]
        if not lacking:
            return
    if lacking:
        raise BadInput(
            f"{path}: no record has the feature {lacking[0]!r}; the first have: "
            f"{', '.join(first.names())}"
        )


def _table(records: Records, columns: Dict[str, Any]) -> pa.Table:
    """The columns, of which there may be none, of as many rows as there are records."""
    if not columns:  # a table that never had a column would have no rows
        return pa.table({"": pa.nulls(len(records.starts))}).select([])
    return pa.table(columns)


def _column(records: Records, name: str, feature: Feature, optional: bool) -> Any:
    wrong = feature.counts > 1 if optional else feature.counts != 1
    if wrong.any():
        row = int(wrong.argmax())
        if not feature.counts[row]:
            part = slice(row, row + 1)
            alone = records._replace(starts=records.starts[part], ends=records.ends[part])
            if name not in alone.names():
                raise BadInput(
                    f"{records.where(row)} has no feature {name!r}; it has: "
                    f"{', '.join(alone.names())}"
                )
        raise BadInput(
            f"{records.path}: column {name!r} in row {records.first + row} holds "
            f"{feature.counts[row]} values; one per row is expected"
        )
    values = feature.values()
    if not pa.types.is_binary(values.type):
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid as error:
        raise BadInput(f"{records.path}: feature {name!r} is not text in every record") from error
