"""Reading columns of a TFRecord file of tf.train.Example without TensorFlow.

An Example is a map from feature name to a list of bytes, floats or int64s. Whoever compares scores
reads columns of values: a feature with exactly one value in every record. Whoever scores a model
reads columns of lists where a record has several. `migrate.encoding.tfrecord` checks the records
themselves. Source: tensorflow/core/example/feature.proto
"""

import importlib
import itertools
import struct
from typing import Any, BinaryIO, Collection, Dict, Iterator, List, Sequence, Tuple

import numpy as np
import pyarrow as pa

from migrate.storage.sources import streamed
from semisync.common.errors import BadInput
from semisync.common.extras import extra

_TOGETHER = 1 << 16  # records in a table

Example = Dict[str, List[Any]]  # values by feature name


def tables_of_values(
    path: str, names: Sequence[str], optional: Collection[str] = ()
) -> Iterator[pa.Table]:
    """The named features, a row per record, in tables of many records; at least one table.

    A table lacks the column of an optional feature that none of its records has.

    Raises: BadInput naming file and record (from 1): for damage, for a feature that is not there or
        has other than one value; MissingExtra without google-crc32c.
    """
    for start, examples in _together(path, _TOGETHER):
        columns: Dict[str, List[Any]] = {name: [] for name in names}
        for row, example in enumerate(examples, start):
            for name, values in columns.items():
                if name in example:
                    values.append(_single(example[name], f"{path}: column {name!r} in row {row}"))
                elif name in optional:
                    values.append(None)
                else:
                    raise BadInput(
                        f"{path}: record {row} has no feature {name!r}; it has: "
                        f"{', '.join(sorted(example))}"
                    )
        yield pa.table(
            {
                name: _column(path, name, values)
                for name, values in columns.items()
                if name not in optional or any(value is not None for value in values)
            }
        )


def tables_of_lists(path: str, names: Sequence[str], size: int) -> Iterator[pa.Table]:
    """The named features, a row per record, in tables of `size` records; at least one table.

    A feature with one value at most in every record of a table is a plain column, any other a
    column of lists; a record that lacks it has a missing value there.

    Raises: as `tables_of_values`, but of features only for one that no record has.
    """
    seen, records = dict.fromkeys(names, 0), 0
    for _, examples in _together(path, size):
        columns = {}
        for name in names:
            seen[name] += sum(name in example for example in examples)
            lists = [example.get(name) or None for example in examples]
            several = any(values is not None and len(values) > 1 for values in lists)
            columns[name] = pa.array(
                lists if several else [None if values is None else values[0] for values in lists]
            )
        records += len(examples)
        yield pa.table(columns)
    for name, count in seen.items():
        if records and not count:
            raise BadInput(f"{path}: no record has the feature {name!r}")


def _together(path: str, size: int) -> Iterator[Tuple[int, List[Example]]]:
    """Records by `size`, each with the number of the first, from 1; at least one list."""
    examples = read_examples(path)
    for start in itertools.count(1, size):
        batch = list(itertools.islice(examples, size))
        if batch or start == 1:
            yield start, batch
        if len(batch) < size:
            return


def read_examples(path: str) -> Iterator[Example]:
    """Each record's values.

    Raises: as `tables_of_values`, for damage.
    """
    with streamed(path) as file:
        for row, data in enumerate(_records(path, file), 1):
            yield _example(data, f"{path}: record {row}")


def _records(path: str, file: BinaryIO) -> Iterator[memoryview]:
    from migrate.encoding.tfrecord import frames

    with extra("report", f"to read {path}"):
        importlib.import_module("google_crc32c")  # which `frames` imports for its first record
    return frames(file.read, path)


def _example(data: memoryview, where: str) -> Example:
    """Example.features = 1, Features.feature = 1, map entry = (1, 2)."""
    from migrate.encoding import wire

    values: Example = {}
    for _, features in wire.fields(data, where):
        for _, entry in wire.fields(wire.message(features, where), where):
            parts = dict(wire.fields(wire.message(entry, where), where))
            if 1 in parts and 2 in parts:
                name = wire.text(parts[1], where)
                values[name] = _values(wire.message(parts[2], where), where)
    return values


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
        raise BadInput(f"{where} holds {len(values)} values; one per row is expected")
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
