"""What a data set consists of: its files and their blocks, the same on every rank.

The digest is of each file's name below the folder that all share, its bytes, and the rows of its
blocks: the same files elsewhere have the same digest.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from migrate.data.formats import json_lines, orc, parquet, text, tfrecord
from migrate.data.paths import Paths, files_of
from migrate.data.place import Broken, Place, explained
from migrate.data.schema import Column, TextFormat
from migrate.storage.threads import default_count, in_threads
from parity.io.data_files import magic_kind, name_kind
from parity.io.partitions import in_path
from semisync.common.errors import BadInput

TYPED: Dict[str, Any] = {"parquet": parquet, "orc": orc, "json": json_lines}  # have Arrow's types


class File(NamedTuple):
    """A file. format: parquet, orc, json, tfrecord or text; rows: of each block; names: of its
    columns; bounds: where the blocks of a TFRecord file begin, and its end."""

    path: str
    size: int
    format: str
    rows: Tuple[int, ...]
    names: Tuple[str, ...]
    bounds: Tuple[int, ...] = ()


class Listing(NamedTuple):
    """The files in their order, and what was skipped because it is broken: file and reason."""

    files: Tuple[File, ...]
    skipped: Tuple[Tuple[str, str], ...] = ()

    def blocks(self) -> List[Tuple[int, int]]:
        """(number of the file, number of the block in it) of each block."""
        return [(k, block) for k, file in enumerate(self.files) for block in range(len(file.rows))]

    def block_rows(self) -> List[int]:
        """The rows of each block."""
        return list(itertools.chain.from_iterable(file.rows for file in self.files))

    def digest(self) -> str:
        """16 hexadecimal digits that another listing does not have."""
        folders = [file.path.split("/")[:-1] for file in self.files]
        shared = len(os.path.commonprefix(folders))  # of lists: how many parts
        lines = [[file.path.split("/")[shared:], file.size, file.rows] for file in self.files]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]

    def place(self, file: int, block: int) -> Place:
        """Where a block stands."""
        return Place(self.files[file].path, sum(self.files[file].rows[:block]))


def survey(
    paths: Paths, schema: Sequence[Column], written: Optional[TextFormat], skip_broken: bool
) -> Listing:
    """Lists the files, and reads of each the columns' names and the rows of its blocks.

    Raises: BadInput where there is no file, where one with rows lacks a column of the schema, and,
        unless they are to be skipped, for a broken one.
    """
    found = files_of(paths, written is not None)
    shared: Dict[Tuple[str, ...], Tuple[str, ...]] = {}

    def one(item: Tuple[str, int]) -> Tuple[str, Any]:
        try:
            file = file_of(*item, written)
        except Broken as error:
            if not skip_broken:
                raise
            return item[0], str(error)
        if any(file.rows):  # Hive writes files without rows, and without columns
            _check_names(file, schema)
        return item[0], file._replace(names=shared.setdefault(file.names, file.names))

    threads = default_count(next(iter(found)))
    results = dict(itertools.chain.from_iterable(in_threads(one, found.items(), threads)))
    files = [results[path] for path in found if isinstance(results[path], File)]
    skipped = [(path, results[path]) for path in found if not isinstance(results[path], File)]
    if not files:
        raise BadInput(
            f"every one of the {len(skipped)} files is broken; the first: {skipped[0][1]}"
        )
    return Listing(tuple(files), tuple(skipped))


def file_of(path: str, size: int, written: Optional[TextFormat]) -> File:
    """What a file's footer, header or lines say of it; Broken where they cannot be read."""
    bounds: Sequence[int] = ()
    with explained(path):
        kind = magic_kind(path) or name_kind(path)
        if kind == "tfrecord":
            names, rows, bounds = tfrecord.survey(path, size)
        elif kind in TYPED and (kind != "json" or written is None):
            arrow, rows = TYPED[kind].survey(path, size)
            names = arrow.names
        else:
            kind = "text"
            names, rows = text.survey(path, size, text.format_of(path, written))
    return File(path, size, kind, tuple(rows), tuple(names), tuple(bounds))


def read_block(
    listing: Listing,
    file: int,
    block: int,
    schema: Sequence[Column],
    written: Optional[TextFormat],
) -> Tuple[Dict[str, Any], Place]:
    """The schema's columns of a block as Arrow arrays, and where it stands.

    Raises: Broken for damage; BadInput for text that is not of its column's kind.
    """
    at, place = listing.files[file], listing.place(file, block)
    columns = [column for column in schema if column.name in at.names]
    with explained(at.path):
        if at.format == "text":
            lines = lines_of(at, block, written, place, columns)
            return {column.name: lines.column(column) for column in columns}, place
        if at.format == "tfrecord":
            return tfrecord.read(at.path, at.bounds, block, place, columns), place
        if at.format == "json":
            return json_lines.read(at.path, at.size, block, at.rows[block], columns), place
        read = parquet.read if at.format == "parquet" else orc.read
        return read(at.path, block, [column.name for column in columns]), place


def lines_of(
    file: File,
    block: int,
    written: Optional[TextFormat],
    place: Place,
    wanted: Sequence[Column] = (),
) -> text.Lines:
    """A block of a text file; wanted: the columns to read, where only these are."""
    how, rows = text.format_of(file.path, written), file.rows[block]
    return text.Lines(file.path, file.size, block, rows, file.names, how, place, wanted)


def _check_names(file: File, schema: Sequence[Column]) -> None:
    for column in schema:
        count = file.names.count(column.name)
        if count > 1:
            raise BadInput(f"{file.path} has {count} columns named {column.name!r}; rename them")
        if not count and column.name not in in_path(file.path):
            raise BadInput(
                f"{file.path} has no column {column.name!r}; it has: {', '.join(file.names)}"
            )
