"""TFRecord of tf.train.Example: a block is the records that begin within 8 MB, as in text files.

One pass over the lengths of all records finds their positions; a compressed file is one block. The
columns are the features in the first block. A feature without a value is missing.
"""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import numpy
import pyarrow as pa

from migrate.data.formats import text
from migrate.data.schema import Column
from parity.io.damage import Broken
from parity.io.formats.tfrecord import Feature, Records, records_in
from semisync.common.errors import BadInput, MissingExtra
from semisync.encoding.tfrecord import starts_of
from semisync.storage.sources import opened, packing_of, unpacked


def survey(path: str, size: int) -> Tuple[List[str], List[int], List[int]]:
    """The names of the features; the rows of each block; and where each begins, with the file's
    end, in decompressed bytes.

    Raises:
        Broken: a damaged length, or the first block is not of Examples.
    """
    with _as_damage():
        if packing_of(path):
            first = unpacked(path)
            starts = starts_of(lambda at: first[at : at + text.BLOCK], path, len(first))
            rows, bounds = [len(starts)], [0, len(first)]
        else:
            with opened(path) as source:
                starts = starts_of(lambda at: _read(source, at, text.BLOCK), path, size)
                blocks = starts // text.BLOCK
                count = max(1, -(-size // text.BLOCK))
                rows = numpy.bincount(blocks, minlength=count).tolist()
                # The first record that begins in a block or later: the bounds of a block without
                # one are equal.
                firsts = numpy.searchsorted(blocks, numpy.arange(count))
                bounds = [*numpy.append(starts, size)[firsts].tolist(), size]
                first = _read(source, bounds[0], bounds[1] - bounds[0])
        return _records_in(first, path, 1).names(), rows, bounds


def read(
    path: str, bounds: Sequence[int], block: int, first: int, wanted: Sequence[Column]
) -> Dict[str, Any]:
    """The columns of a block as Arrow arrays, null where a record has no value.

    Args:
        bounds: as `survey` found them.
        first: the block's first row.

    Raises:
        Broken: damage.
        BadInput: a feature has values of several types, or others where text is due.
    """
    records = _records(path, bounds, block, first)
    features = records.features([column.name for column in wanted])
    return {column.name: _column(features[column.name], column, path) for column in wanted}


def schema(path: str, bounds: Sequence[int]) -> Any:
    """The Arrow schema of the first block: lists for several values, of fixed size if all agree."""
    records = _records(path, bounds, 0, 0)
    found = records.features(records.names())
    return pa.schema([(name, _type(feature)) for name, feature in found.items()])


def _type(feature: Feature) -> Any:
    array = feature.plain_where_possible()
    most = int(feature.counts.max(initial=0))
    if most > 1 and (feature.counts == most).all():
        return pa.list_(array.type.value_type, most)
    return array.type


def _column(feature: Feature, column: Column, path: str) -> Any:
    array = feature.plain_where_possible()
    if column.kind != "key" or not pa.types.is_binary(array.type):
        return array
    try:
        return array.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise BadInput(f"{path}: column {column.name!r} is not text in every record") from error


def _records(path: str, bounds: Sequence[int], block: int, first: int) -> Records:
    start, stop = bounds[block : block + 2]
    if packing_of(path):
        data = unpacked(path)[start:stop]
    else:
        with opened(path) as source:
            data = _read(source, start, stop - start)
    return _records_in(data, path, first + 1)


def _records_in(data: bytes, path: str, first: int) -> Records:
    """All records of these bytes, numbered from `first` on."""
    pieces = iter([data])
    with _as_damage():
        # All bytes come as one piece, so that there is one `Records`.
        for records in records_in(lambda _: next(pieces, b""), path, first):
            return records
    none = numpy.empty(0, numpy.int64)
    return Records(path, 1, numpy.empty(0, numpy.uint8), none, none)


@contextlib.contextmanager
def _as_damage() -> Iterator[None]:
    try:
        yield
    except MissingExtra:
        raise
    except BadInput as error:
        raise Broken(str(error)) from error


def _read(source: Any, at: int, size: int) -> bytes:
    source.seek(at)
    found: bytes = source.read(size)
    return found
