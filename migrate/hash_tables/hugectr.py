"""Dumps of HugeCTR and of its kit for TensorFlow, SOK: raw arrays of keys and rows.

    HugeCTR   DIR/key (int64), DIR/emb_vector (float32); localized also slot_id
    SOK       DIR/meta_info, DIR/X-key, X-weight, X-<Optimizer>-<slot>

SOK's meta_info, all numbers big-endian, is

    4 bytes        number n of tables
    n x 4, 4, 4    types of keys, types of rows, row sizes
    n x 8          numbers of rows
    n x 256, 32    names of tables and optimizers, padded with spaces on the left

and every array begins with the table's name (256 bytes), file type (4), slot name (32), dtype (4).
Source: docs/hugectr_user_guide, sparse_operation_kit/dump_load.py. These sources are all that was
read: no file that either wrote.
"""

from __future__ import annotations

import dataclasses
import os
import string
from typing import Dict, NamedTuple, Optional

import numpy

from migrate.hash_tables.files import ASSUMED, FilePart, Types, listing, number_array, sized_table
from migrate.hash_tables.hash_table import HashTable
from semisync.common.errors import BadInput
from semisync.storage.files import StoredFile

_HEAD = 296  # bytes before the array: table name 256, file type 4, slot name 32, dtype 4
_ENTRY = 308  # bytes of meta_info per table
_DTYPES = ("int32", "int64", "uint32", "uint64", "float16", "float32", "float64")


class _Meta(NamedTuple):
    """A table's entry in meta_info, and the stem of its files."""

    name: str
    stem: str
    types: Types
    rows: int
    dim: int


def read_hugectr(path: str, types: Types) -> Optional[Dict[str, HashTable]]:
    """The one table in a directory of HugeCTR, by the directory's name; else None."""
    names = listing(path)
    if "key" not in names or "emb_vector" not in names:
        return None
    pair = (os.path.join(path, "key"), os.path.join(path, "emb_vector"))
    name = os.path.basename(os.path.abspath(path))
    return {name: sized_table(name, "HugeCTR", [pair], ASSUMED)}


def read_sok(path: str, types: Types) -> Optional[Dict[str, HashTable]]:
    """The tables in a SOK directory by name; None without meta_info, which has the types."""
    if "meta_info" not in listing(path):
        return None
    info = os.path.join(path, "meta_info")
    with StoredFile(info) as file:
        count = int.from_bytes(file.read(0, 4, info), "big")
        if file.size != 4 + count * _ENTRY:
            raise BadInput(f"{info} has {file.size} bytes, not what {count} tables need")
        data = file.read(4, count * _ENTRY, info)
    # Column after column, not table after table: all key types first, then the row types.
    numbers = numpy.frombuffer(data[: 12 * count], ">u4").reshape(3, count).tolist()
    rows = numpy.frombuffer(data[12 * count : 20 * count], ">u8").tolist()
    tables = {}
    for index in range(count):
        start = 20 * count + 256 * index
        name = _ascii(data[start : start + 256], info)
        key_type, row_type, dim = (column[index] for column in numbers)
        if max(key_type, row_type) >= len(_DTYPES):
            raise BadInput(f"{info}: table {name!r} has an unknown data type")
        # As SOK names the files of a table; `_sok_part` reads the name itself from their heads.
        stem = "".join("_" if letter in string.punctuation else letter for letter in name)
        meta = _Meta(
            name=name,
            stem=os.path.join(path, stem),
            types=Types(_DTYPES[key_type], _DTYPES[row_type]),
            rows=rows[index],
            dim=dim,
        )
        tables[name] = _sok_table(meta)
    return tables


def _sok_table(meta: _Meta) -> HashTable:
    table = HashTable(
        name=meta.name,
        kind="HugeCTR",
        key_dtype=meta.types.key,
        dtype=meta.types.value,
        value_shape=(meta.dim,),
        parts=(_sok_part(meta, meta.stem + "-weight"),),
    )
    folder, base = os.path.split(meta.stem)
    for file in listing(folder):
        words = file[len(base) + 1 :].split("-")
        if file.startswith(base + "-") and len(words) == 2:
            part = _sok_part(meta, os.path.join(folder, file))
            table.slots["_".join(words)] = dataclasses.replace(table, parts=(part,), slots={})
    return table


def _sok_part(meta: _Meta, values: str) -> FilePart:
    """The keys of a table with its rows or a slot, both checked against meta_info."""
    key, value = number_array(meta.types.key), number_array(meta.types.value)
    sizes = {meta.stem + "-key": key.itemsize, values: meta.dim * value.itemsize}
    for path, size in sizes.items():
        with StoredFile(path) as file:
            if file.size != _HEAD + meta.rows * size:
                raise BadInput(
                    f"{path} has {file.size} bytes, not the {meta.rows} rows of {meta.name!r}"
                )
            if _ascii(file.read(0, 256, path), path) != meta.name:
                raise BadInput(f"{path} belongs to another table than {meta.name!r}")
    return FilePart(
        keys=meta.stem + "-key",
        values=values,
        key_dtype=key,
        dtype=value,
        stored=meta.rows,
        dim=meta.dim,
        head=_HEAD,
    )


def _ascii(data: bytes, path: str) -> str:
    try:
        return data.decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: the name of a table is not text") from error
