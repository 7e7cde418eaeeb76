"""TFRA's dynamic embedding variables, whose parts have "mht" in their names.

    in a checkpoint        scope/X_mht_1of2-keys and -values; slots scope/X_Adam_m_mht_1of2
    by FileSystemSaver     DIR/X_mht_1of2_rank0_size1-keys and -values: raw arrays without a header,
                           a data type or a checksum; slots X_Adam_m_mht_... DIR is mostly
                           TFRADynamicEmbedding or TFRADynamicEmbedding-STEP beside a checkpoint,
                           which has a scalar X_mht_1of2-shard_upsert_restore for each part

Types that the files lack are taken to be int64 for keys and float32 for rows by default.
Source: dynamic_embedding_variable.py; read here: files of TFRA 0.8.1.
"""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.hash_tables.files import ASSUMED, Types, listing, sized_table
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.table_slots import with_slots
from migrate.hash_tables.tensors import Stem, TensorPart, assemble, columns_of
from semisync.common.errors import BadInput

BESIDE = "-shard_upsert_restore"
_FOLDER = "TFRADynamicEmbedding"
_TENSOR = re.compile(r"^(.+)_mht_(\d+)of(\d+)$")
_FILE = re.compile(r"^(.+)_mht_(\d+)of(\d+)_rank(\d+)_size(\d+)-keys$")


class _Place(NamedTuple):
    """The number and rank of a part, and how many there are, as the name of its file states."""

    rank: int
    part: int
    parts: int
    ranks: int


def stem_of(name: str) -> Optional[Stem]:
    """The part of a table in a checkpoint; None if the name is not TFRA's."""
    part = _TENSOR.match(name)
    return Stem(name, part[1], int(part[2]) - 1, int(part[3])) if part else None


def read_table(checkpoint: Checkpoint, stems: List[Stem]) -> HashTable:
    """The table in a checkpoint whose parts are `stems`."""
    parts = [TensorPart(checkpoint, columns_of(checkpoint, stem)) for stem in stems]
    return assemble(checkpoint, stems[0], "TFRA", parts)


def read_files(path: str, types: Types) -> Optional[Dict[str, HashTable]]:
    """The tables that FileSystemSaver wrote to a directory, by name; None if there are none."""
    places: Dict[str, List[Tuple[_Place, str]]] = {}
    for name in listing(path):
        match = _FILE.match(name)
        if match:
            # Names count parts from 1, ranks from 0.
            place = _Place(int(match[4]), int(match[2]) - 1, int(match[3]), int(match[5]))
            places.setdefault(match[1], []).append((place, name[: -len("-keys")]))
    tables = {}
    for table, parts in places.items():
        _check_complete(path, table, [place for place, _ in parts])
        stems = [os.path.join(path, stem) for _, stem in sorted(parts)]
        pairs = [(stem + "-keys", stem + "-values") for stem in stems]
        tables[table] = sized_table(table, "TFRA", pairs, types)
    tables = with_slots(tables)
    for sized in tables.values():
        _size_slots(sized)
    return tables or None


def tables_beside(checkpoint: Checkpoint) -> Dict[str, HashTable]:
    """The tables that FileSystemSaver wrote beside a checkpoint; BadInput if one is not there."""
    named = [stem_of(name[: -len(BESIDE)]) for name in checkpoint if name.endswith(BESIDE)]
    wanted = {stem.table for stem in named if stem is not None}
    if not wanted:
        return {}
    folder, prefix = os.path.split(checkpoint.prefix)
    # With the step of `model.ckpt-STEP`, or without one; the last is named if neither is there.
    places = [os.path.join(folder, _FOLDER + end) for end in ("-" + prefix.split("-")[-1], "")]
    place = next((one for one in places if os.path.isdir(one)), places[-1])
    tables = read_files(place, ASSUMED) or {}
    # A slot is a table of TFRA's too, with an entry of its own in the checkpoint.
    there = {*tables, *(slot.name for table in tables.values() for slot in table.slots.values())}
    missing = sorted(wanted - there)
    if missing:
        raise BadInput(
            f"{checkpoint.prefix}: TFRA's FileSystemSaver wrote the table {missing[0]!r} into "
            f"files of its own, which {place} does not have; put their folder there"
        )
    return tables


def _check_complete(directory: str, table: str, places: List[_Place]) -> None:
    """Parts are numbered over all ranks, or over those of one rank again and again."""
    counts = {(place.parts, place.ranks) for place in places}
    if len(counts) > 1:
        raise BadInput(f"{directory}: table {table!r} mixes saves of {sorted(counts)} parts, ranks")
    parts, ranks = counts.pop()
    present = {(place.rank, place.part) for place in places}
    over_all = {part for _, part in present} == set(range(parts)) and len(present) == parts
    missing_rank = set(range(ranks)) - {rank for rank, _ in present}
    if missing_rank or not (over_all or len(present) == parts * ranks):
        raise BadInput(
            f"{directory}: table {table!r} has {len(present)} files, but their names tell of "
            f"{parts} parts and {ranks} ranks; some are missing"
        )


def _size_slots(table: HashTable) -> None:
    """Gives the table's row size to slots without rows, whose files do not show one."""
    for name, slot in table.slots.items():
        if not slot.stored:
            table.slots[name] = dataclasses.replace(slot, value_shape=table.value_shape)
