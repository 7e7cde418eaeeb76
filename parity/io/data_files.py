"""The files that a path stands for: one file, a pattern in quotes, or a folder as writers leave it.

Of a folder, at any depth:

1. Names that begin with . or _ are a writer's own (_SUCCESS, _temporary, .crc files), unless they
   are a partition, such as _day=1 (Spark's rule).
2. The log of a Delta table says which of its files are part of it (parity.io.delta), of a folder or
   pattern inside the table as well. A Hudi table is refused.
3. Files with a known suffix are data, and files of another name that are Parquet or ORC by their
   magic. Others are left out, except those without a suffix, as Hive writes text: they may be data
   that would be missing, so they are refused.
4. A part without a byte, packed or not, holds no rows; Spark and Hive write such parts of text and
   ORC, and of Parquet never.
"""

import glob
import os
import re
from typing import Iterator, List, Optional, Set

from parity.io.delta import LOG, in_last_version, live_files
from semisync.common.errors import BadInput

PARQUET = b"PAR1"
ORC = b"ORC"
COMPRESSED = {".gz": b"\x1f\x8b", ".bz2": b"BZh", ".zst": b"\x28\xb5\x2f\xfd"}
JSON_LINES = {".jsonl", ".ndjson", ".json"}

_LARGEST_EMPTY = 64  # bytes of a packed file of nothing

# A .json file beside data may be anything, unless Spark wrote it.
_KNOWN = re.compile(
    r"(\.(parquet|orc|csv|tsv|tfrecords?|jsonl|ndjson)|/part-[^/]*\.json)(\.(gz|bz2|zst))?$"
)


def files_of(path: str) -> List[str]:
    """The files that a path, a folder or a pattern stands for, sorted.

    Raises: BadInput where there is none, and for one in a folder that cannot be told to be data.
    """
    if os.path.isdir(path):
        files = sorted(in_last_version(_below(path)))
        if not files:
            raise BadInput(
                f"{path} is a folder without a Parquet, ORC, CSV, TSV, JSON lines or TFRecord file"
            )
        return files
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    matched: Set[str] = set()
    for match in glob.glob(path, recursive=True):
        if _is_hidden(os.path.relpath(match, _literal(path))):
            continue
        if os.path.isdir(match):
            matched.update(_below(match))
        elif not _is_empty_part(match):
            matched.add(match)
    if not matched:
        raise BadInput(f"no file matches {path}")
    return sorted(in_last_version(matched))


def magic_kind(path: str) -> Optional[str]:
    """ "parquet" or "orc", by the file's first bytes; None for another file, "" for no bytes."""
    with open(path, "rb") as file:
        magic = file.read(len(PARQUET))
    if not magic:
        return ""
    if magic == PARQUET:
        return "parquet"
    return "orc" if magic.startswith(ORC) else None


def _below(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder, followlinks=True):
        if LOG in folders:
            yield from live_files(root)
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_hidden(name)]
        for name in files:
            path = os.path.join(root, name)
            if not _is_hidden(name) and _is_data(path):
                yield path


def _is_hidden(path: str) -> bool:
    """Whether a part of the path is a writer's own."""
    return any(
        name[0] == "." or (name[0] == "_" and "=" not in name)
        for name in path.split(os.sep)
        if name not in (".", "..")
    )


def _is_data(path: str) -> bool:
    if _is_empty_part(path):
        return False
    if _KNOWN.search(path.lower()):
        return True
    try:
        known = magic_kind(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error
    if not known and os.path.splitext(path)[1].lower() in ("", *COMPRESSED):
        raise BadInput(
            f"{path} may be data, but it is neither Parquet nor ORC, and its name does not say "
            "which text format it has; name it .csv, .tsv, .jsonl or .tfrecord, or remove it"
        )
    return bool(known)


def _is_empty_part(path: str) -> bool:
    suffix = os.path.splitext(path)[1].lower()
    if suffix == ".parquet" or not os.path.isfile(path):
        return False
    if suffix not in COMPRESSED or os.path.getsize(path) > _LARGEST_EMPTY:
        return not os.path.getsize(path)
    import pyarrow  # when needed: the command line comes here for --help too

    try:
        with pyarrow.input_stream(path) as file:
            return not file.read(1)
    except OSError:
        return False  # damaged, which its reader says


def _literal(pattern: str) -> str:
    """The folder that a pattern names before its first wildcard."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)
    return pattern or "."
