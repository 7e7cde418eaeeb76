"""The content of a data set: its files and their blocks, the same on every rank.

The digest covers each file's name below their common folder, its size, and the rows of its blocks:
the same files elsewhere have the same digest.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from migrate.data.formats import json_lines, text, tfrecord
from migrate.data.schema import Column
from parity.io.damage import Broken, explained
from parity.io.data_files import format_of, sizes_of
from parity.io.formats import FORMATS, chosen
from parity.io.formats.text import refuse_cut
from parity.io.partitions import in_path
from parity.io.text_format import SEPARATORS, TextFormat, of_kind
from semisync.common.errors import BadInput, UsageError
from semisync.common.ordering import by_numbers
from semisync.storage import folders
from semisync.storage.threads import default_count, in_threads

Paths = Union[str, "os.PathLike[str]", Sequence[Any]]
COLUMNAR = ("parquet", "orc")  # read by parity.io.formats


class File(NamedTuple):
    """A file.

    Attributes:
        format: of parity.io.formats, or "text" if its format is given.
        rows: of each block.
        names: of its columns.
        bounds: where the blocks of a TFRecord file begin, and its end.
    """

    path: str
    size: int
    format: str
    rows: Tuple[int, ...]
    names: Tuple[str, ...]
    bounds: Tuple[int, ...] = ()


class Block(NamedTuple):
    """A block of a file: its number there, its rows, and the number of the first one, from 0."""

    file: File
    number: int
    rows: int
    first: int


class Listing(NamedTuple):
    """The files in their order, and those that were skipped as broken: file and reason."""

    files: Tuple[File, ...]
    skipped: Tuple[Tuple[str, str], ...] = ()

    def blocks(self) -> List[Block]:
        """Every block of the files."""
        return [
            Block(file, number, rows, end - rows)
            for file in self.files
            for number, (rows, end) in enumerate(zip(file.rows, itertools.accumulate(file.rows)))
        ]

    def block_rows(self) -> List[int]:
        """The rows of each block."""
        return list(itertools.chain.from_iterable(file.rows for file in self.files))

    def digest(self) -> str:
        """16 hexadecimal digits that another listing does not have."""
        folders = [file.path.split("/")[:-1] for file in self.files]
        shared = len(os.path.commonprefix(folders))  # of lists: how many parts
        lines = [[file.path.split("/")[shared:], file.size, file.rows] for file in self.files]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16]


def survey(
    paths: Paths, schema: Sequence[Column], written: Optional[TextFormat], skip_broken: bool
) -> Listing:
    """Lists the files, and reads the names of their columns and the rows of their blocks.

    Raises:
        BadInput: there is no file, one with rows lacks a column of the schema, or one is broken,
            unless these are to be skipped.
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
            _check_names(file, schema, written)
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
    """A file by its footer, header or lines; raises Broken if they cannot be read."""
    bounds: Sequence[int] = ()
    with explained(path):
        kind = format_of(path, written is not None)
        if kind in COLUMNAR:
            file = FORMATS[kind](path)
            names, rows = file.columns, file.block_rows()
        elif kind == "tfrecord":
            names, rows, bounds = tfrecord.survey(path, size)
        elif kind == "json":
            arrow, rows = json_lines.survey(path, size)
            names = arrow.names
        else:
            how = of_kind(kind, written)
            if how.decimal != ".":
                raise UsageError(
                    f"{path}: numbers with decimal commas are read as scores alone; write the rows "
                    "to train with as Parquet, or with decimal points"
                )
            names, rows = text.survey(path, size, how)
    return File(path, size, kind, tuple(rows), tuple(names), tuple(bounds))


def _check_names(file: File, schema: Sequence[Column], written: Optional[TextFormat]) -> None:
    names = [column.name for column in schema]
    chosen(file.path, file.names, names, in_path(file.path))
    # A file that ends in the middle of its last number would be read with another one.
    if file.format in SEPARATORS and file.names[-1] in names:
        refuse_cut(file.path, of_kind(file.format, written))


def files_of(paths: Paths, written: bool = False) -> Dict[str, int]:
    """Each file's absolute path and its size in bytes, sorted by path, part-2 before part-10.

    Args:
        written: whether the format of text files is known.

    Raises:
        BadInput: a path matches no file, or a file that may not be data.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    found: Dict[str, int] = {}
    for path in paths:
        files = sizes_of(os.fspath(path), written)
        found.update((folders.absolute(name), size) for name, size in files.items())
    if not found:
        raise BadInput("no path is given; name the files, folders or patterns to read")
    return {name: found[name] for name in sorted(found, key=by_numbers)}


def other_order(paths: Paths, written: bool = False) -> Optional[str]:
    """A warning if files are named in another order than that of `files_of`, in which they are
    read; else None.

    Args:
        written: as of `files_of`.
    """
    if isinstance(paths, (str, os.PathLike)) or len(paths) < 2:
        return None
    named = list(dict.fromkeys(name for path in paths for name in files_of(path, written)))
    for first, read in zip(named, sorted(named, key=by_numbers)):
        if first != read:
            return f"the files are read in the order of their paths: {read} before {first}"
    return None
