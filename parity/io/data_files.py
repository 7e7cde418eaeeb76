"""The files that a path names: one file, a pattern in quotes, or a folder as writers leave it.

Paths lie on disk or behind a URL; something that exists goes before a pattern of the same text. Of
a folder or pattern, at any depth:

1. Names that begin with . or _ are a writer's own (_SUCCESS, _temporary, .crc files), unless they
   are a partition, such as _day=1 (Spark's rule).
2. The log of a Delta table says which of its files are part of it (parity.io.delta), of a folder or
   pattern inside the table as well. A Hudi table is refused.
3. In a folder, files with a known suffix are data, and files of another name that are Parquet or
   ORC by their magic. Others are left out, except those without a suffix, as Hive writes text: they
   may be data that would be missing, so they are refused. Where it is known how text is written,
   every file is data.
4. A part without a byte, packed or not, holds no rows; Spark and Hive write such parts of text and
   ORC, and of Parquet never.
"""

import glob
import re
from typing import Dict, List, Optional

from parity.io.damage import Broken
from parity.io.delta import in_last_version
from semisync.common.errors import BadInput, SemisyncError
from semisync.common.ordering import by_numbers
from semisync.common.sentences import words_of
from semisync.storage import folders
from semisync.storage.sources import PACKED, opened, packing_of, streamed, suffix_of

PARQUET = b"PAR1"
ORC = b"ORC"

_BY_NAME = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}

_LARGEST_EMPTY = 64  # bytes of a packed file of nothing

# A .json file beside data may be anything, unless Spark wrote it.
_OF_SPARK = re.compile(r"/part-[^/]*$")


def files_of(path: str, written: bool = False) -> List[str]:
    """The files of `sizes_of`, and its errors."""
    return list(sizes_of(path, written))


def sizes_of(path: str, written: bool = False) -> Dict[str, int]:
    """The files that a path names, sorted, part-2 before part-10, and the bytes of each.

    Args:
        written: whether it is known how text files are written, whatever their names.

    Raises:
        BadInput: there is none, or a file in a folder that may not be data.
    """
    try:
        if folders.is_file(path):
            return {path: folders.size_of(path)}
        if folders.is_folder(path):
            found = _of_folder(path, written)
        elif glob.has_magic(path):
            found = _of_pattern(path, written)
        else:
            raise BadInput(f"{path} does not exist")
    except SemisyncError:
        raise
    except Exception as error:  # every file system has exceptions of its own
        raise BadInput(f"{path} cannot be listed: {words_of(error)}") from error
    return {name: found[name] for name in sorted(found, key=by_numbers)}


def is_hidden(name: str) -> bool:
    """Whether something of this name is a writer's own."""
    return name[0] == "." or (name[0] == "_" and "=" not in name)


def format_of(path: str, written: bool = False) -> str:
    """The file's entry in parity.io.formats: by its first bytes, else by its name.

    Args:
        written: whether it is known how text files are written; then "text", whatever the name.

    Raises:
        BadInput: a file of no known format.
        Broken: an empty one.
    """
    kind, by_name = _by_magic(path), named(path)
    if kind == "" and by_name != "tfrecord":  # without records that has no byte
        raise Broken(f"{path} is empty (0 bytes)")
    if not kind:
        _refuse_packed(path)
        kind = "text" if written and by_name not in ("tfrecord", "csv", "tsv") else by_name
    if kind is None:
        raise BadInput(
            f"{path} is neither Parquet (it does not begin with PAR1) nor ORC nor, by its name, a "
            ".csv, .tsv, .jsonl or .tfrecord file; name it so, or say how it is written: --text, "
            "or text in Python and in settings"
        )
    return kind


def named(path: str) -> Optional[str]:
    """The format by the file's name: one without a magic number."""
    return _BY_NAME.get(suffix_of(path))


def _by_magic(path: str) -> Optional[str]:
    """ "parquet" or "orc", by the file's first bytes; None for another file, "" for no bytes."""
    with opened(path) as file:
        magic = file.read(len(PARQUET))
    if not magic:
        return ""
    if magic == PARQUET:
        return "parquet"
    return "orc" if magic.startswith(ORC) else None


def _of_folder(path: str, written: bool) -> Dict[str, int]:
    found = _below(path, written)
    if not found:
        unsure = any(suffix_of(name) == ".json" for name in folders.below(path, is_hidden))
        raise BadInput(
            f"{path} is a folder without a Parquet, ORC, CSV, TSV, JSON lines or TFRecord file"
            + ("; its .json files are data if a pattern, such as '*.json', says so" * unsure)
        )
    return found


def _of_pattern(path: str, written: bool) -> Dict[str, int]:
    found: Dict[str, int] = {}
    matched = folders.matching(path, is_hidden)
    files = {name: size for name, size in matched.items() if size is not None}
    for name in in_last_version(files):
        if not _is_empty_part(name, files[name]):
            found[name] = files[name]
    for name, size in matched.items():
        if size is None:
            found.update(_below(name, written))
    if not found:
        raise BadInput(f"no file matches {path}")
    return found


def _below(folder: str, written: bool) -> Dict[str, int]:
    found = folders.below(folder, is_hidden)
    return {
        name: found[name]
        for name in in_last_version(found, folder)
        if _is_data(name, found[name], written)
    }


def _is_data(path: str, size: int, written: bool) -> bool:
    if _is_empty_part(path, size):
        return False
    suffix = suffix_of(path)
    if written or suffix in (".parquet", ".orc"):
        return True
    if named(path) and (suffix != ".json" or _OF_SPARK.search(path)):
        return True
    try:
        known = _by_magic(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error}") from error
    if not known and (not suffix or packing_of(path)):
        raise BadInput(
            f"{path} may be data, but it is neither Parquet nor ORC, and its name does not say "
            "which text format it has; name it .csv, .tsv, .jsonl or .tfrecord, say with "
            "--text (text=) how it is written, or remove it"
        )
    return bool(known)


def _is_empty_part(path: str, size: int) -> bool:
    if path.lower().endswith(".parquet"):  # no writer leaves one without a byte: it is damaged
        return False
    if packing_of(path) is None or size > _LARGEST_EMPTY:
        return not size
    try:
        with streamed(path) as file:
            return not file.read(1)
    except OSError:
        return False  # damaged, which its reader says


def _refuse_packed(path: str) -> None:
    """Refuses a compressed file whose name does not say so."""
    if packing_of(path) is not None:
        return
    with opened(path) as file:
        start = file.read(4)
    for suffix, packing in PACKED.items():
        if start.startswith(packing.magic):
            raise BadInput(f"{path} is compressed, but its name does not end with {suffix}")
