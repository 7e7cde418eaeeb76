"""Reading columns of a TFRecord file of tf.train.Example without TensorFlow.

A record is its length (8 bytes), the masked CRC-32C of those, the data, and the CRC of the data. An
Example is a map from feature name to a list of bytes, floats or int64s; a column here is a feature
with exactly one value. Sources: tensorflow/core/lib/io/record_writer.h, core/example/feature.proto.
"""

import gzip
import itertools
import struct
import zlib
from typing import Any, BinaryIO, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import pyarrow as pa

from semisync.common.errors import BadInput, MissingExtra

SUFFIXES = (".tfrecord", ".tfrecords")
_LONGEST = 1 << 28  # bytes; a longer record is taken for damage


_TOGETHER = 1 << 16  # records in a table


def read_tfrecord(path: str, wanted: Sequence[str], optional: Sequence[str] = ()) -> pa.Table:
    """The wanted features, a row a record; raises as `tfrecord_tables`."""
    tables = list(tfrecord_tables(path, wanted, optional))
    return pa.concat_tables(tables, promote_options="permissive")


def tfrecord_tables(
    path: str, wanted: Sequence[str], optional: Sequence[str] = ()
) -> Iterator[pa.Table]:
    """The wanted features, a row a record, in tables of many records; at least one table.

    Raises: BadInput naming file and record (from 1): for damage, for a feature that is not there or
    has other than one value; MissingExtra without google-crc32c.
    """
    records = read_examples(path)
    seen = 0
    while True:
        columns: Dict[str, List[Any]] = {name: [] for name in wanted}
        for row, found in itertools.islice(records, _TOGETHER):
            _append(columns, found, path, row, optional)
        count = len(columns[wanted[0]])
        if count or not seen:
            yield _table(path, columns, optional)
        seen += count
        if count < _TOGETHER:
            return


def _table(path: str, columns: Dict[str, List[Any]], optional: Sequence[str]) -> pa.Table:
    """Without optional columns that no record has."""
    return pa.table(
        {
            name: _column(path, name, values)
            for name, values in columns.items()
            if name not in optional or any(value is not None for value in values)
        }
    )


def _append(
    columns: Dict[str, List[Any]],
    found: Dict[str, List[Any]],
    path: str,
    row: int,
    optional: Sequence[str],
) -> None:
    """Adds one record's values to the columns."""
    for name, values in columns.items():
        if name in found:
            values.append(_single(found[name], f"{path}: column {name!r} in row {row}"))
        elif name not in optional:
            raise BadInput(
                f"{path}: record {row} has no feature {name!r}; it has: {', '.join(sorted(found))}"
            )
        else:
            values.append(None)


def read_examples(path: str) -> Iterator[Tuple[int, Dict[str, List[Any]]]]:
    """Each record's number, from 1, and its values by feature name.

    Raises: as `tfrecord_tables`, for damage.
    """
    opened: Any = gzip.open if path.lower().endswith(".gz") else open
    with opened(path, "rb") as file:
        try:
            for row, data in enumerate(_records(path, file), 1):
                yield row, _example(data, f"{path}: record {row}")
        except (EOFError, zlib.error) as error:  # of gzip; neither is an OSError
            raise BadInput(
                f"{path} cannot be read, its compression is cut short or corrupt: {error}"
            ) from error


def _records(path: str, file: BinaryIO) -> Iterator[bytes]:
    try:
        from migrate.encoding.crc32c import masked_value
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"reading {path} needs google-crc32c: install semisync[torch]"
        ) from error
    row = 1
    while True:
        head = file.read(12)
        if not head:
            return
        length = int.from_bytes(head[:8], "little")
        if len(head) < 12 or length > _LONGEST:
            raise BadInput(f"{path}: record {row} is cut short or corrupt in its length")
        data, tail = file.read(length), file.read(4)
        if len(data) < length or len(tail) < 4:
            raise BadInput(f"{path}: record {row} is cut short")
        stored = head[8:], tail
        for crc, covered in zip(stored, (head[:8], data)):
            if int.from_bytes(crc, "little") != masked_value(covered):
                raise BadInput(f"{path}: record {row} is corrupt, its checksum does not match")
        yield data
        row += 1


def _example(data: bytes, where: str) -> Dict[str, List[Any]]:
    """Values by feature name. Example.features = 1, Features.feature = 1, map entry = (1, 2)."""
    from migrate.encoding import wire

    found: Dict[str, List[Any]] = {}
    for _, features in wire.fields(memoryview(data), where):
        for _, entry in wire.fields(wire.message(features, where), where):
            parts = dict(wire.fields(wire.message(entry, where), where))
            if 1 in parts and 2 in parts:
                name = wire.text(parts[1], where)
                found[name] = _values(wire.message(parts[2], where), where)
    return found


def _values(feature: memoryview, where: str) -> List[Any]:
    """Feature: bytes_list = 1, float_list = 2, int64_list = 3; each a repeated field 1."""
    from migrate.encoding import wire

    values: List[Any] = []
    for kind, body in wire.fields(feature, where):
        for _, value in wire.fields(wire.message(body, where), where):
            if kind == 1:
                values.append(bytes(wire.message(value, where)))
            elif kind == 2 and isinstance(value, int):
                values.append(struct.unpack("<f", struct.pack("<I", value))[0])
            elif kind == 2:
                values += np.frombuffer(wire.message(value, where), "<f4").tolist()
            elif isinstance(value, int):
                values.append(wire.signed(value))
            else:
                position = 0
                while position < len(value):
                    item, position = wire.varint(value, position, where)
                    values.append(wire.signed(item))
    return values


def _single(values: List[Any], where: str) -> Any:
    if len(values) != 1:
        raise BadInput(f"{where} holds {len(values)} values; one a row is expected")
    return values[0]


def _column(path: str, name: str, values: List[Any]) -> pa.Array:
    kinds = {type(value) for value in values}
    if bytes in kinds:
        try:
            return pa.array([value.decode() for value in values], pa.string())
        except (AttributeError, UnicodeDecodeError) as error:
            raise BadInput(f"{path}: feature {name!r} is not text in every record") from error
    if kinds <= {float}:
        return pa.array(values, pa.float32())
    return pa.array(values, pa.float64() if float in kinds else pa.int64())
