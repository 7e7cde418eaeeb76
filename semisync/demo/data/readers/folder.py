"""Which files a path means.

A file means itself. A folder means its files ending in .csv, .tsv, .txt, .parquet or .pq that have
a label, in the order train, dev or valid, test where their names start so, else by name; with a
time column the rows of all are then put into one order (`assemble`). The others are skipped with a
note. Two things are mended, as published samples need them:

1. A file without a header belongs to the log of the first file that has one when its first line
   has as many values and a 0 or 1 for the label (a log cut into pieces).
2. Files of different columns are one log of the union of their columns with a field `file`, since
   an id need not mean the same in each.
"""

import pathlib
from typing import Callable, List, Optional

from semisync.common.errors import BadInput
from semisync.demo.data.readers.delimited import DelimitedFile, open_delimited
from semisync.demo.data.readers.parquet import MAGIC, ParquetFile
from semisync.demo.data.readers.roles import Wishes, label_of
from semisync.demo.data.readers.source import Source

_ENDINGS = {".csv", ".tsv", ".txt", ".parquet", ".pq"}
_PARTS = ("train", "dev", "val", "test")


def sources_of(path: pathlib.Path, wishes: Wishes, note: Callable[[str], None]) -> List[Source]:
    """Opens the files that a path means, in order; never empty.

    Raises: BadInput when there is no such path, or nothing in it that is a click log.
    """
    if not path.exists():
        raise BadInput(f"{path} does not exist; name a file or a folder of a click log")
    if not path.is_dir():
        return [_open(path)]
    files = sorted(
        (file for file in path.iterdir() if file.suffix.lower() in _ENDINGS and file.is_file()),
        key=_in_time,
    )
    if not files:
        raise BadInput(f"{path} holds no file ending in {', '.join(sorted(_ENDINGS))}")
    opened = [_open(file) for file in files]
    first = next((source for source in opened if _labelled(source, wishes)), None)
    if first is None:
        raise BadInput(
            f"none of the {len(files)} files in {path} has a label column; name one of them and "
            "its label"
        )
    chosen: List[Source] = []
    for source in opened:
        part = source if _labelled(source, wishes) else _part_of(first, source, wishes)
        if part is None:
            note(f"{source.path} is skipped: it has no label column")
        else:
            chosen.append(part)
    _check_one_log(chosen, wishes)
    return chosen


def _open(path: pathlib.Path) -> Source:
    try:
        with open(path, "rb") as file:
            magic = file.read(len(MAGIC))
        if magic == MAGIC or path.suffix.lower() in {".parquet", ".pq"}:
            return ParquetFile(path)
        return open_delimited(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be opened: {error.strerror}") from error


def _in_time(path: pathlib.Path) -> tuple:
    rank = next((i for i, part in enumerate(_PARTS) if path.stem.lower().startswith(part)), None)
    return (len(_PARTS) if rank is None else rank, path.name)


def _labelled(source: Source, wishes: Wishes) -> bool:
    return label_of(source.path, source.names, wishes) is not None


def _part_of(first: Source, source: Source, wishes: Wishes) -> Optional[Source]:
    """`source` with the header of `first`, if it reads as a part of the same log."""
    if not isinstance(first, DelimitedFile) or not isinstance(source, DelimitedFile):
        return None
    label = label_of(first.path, first.names, wishes)
    assert label is not None, "only a labelled file can lend its header"
    values = source.names
    if len(values) != len(first.names) or values[first.names.index(label)] not in {"0", "1"}:
        return None
    return source.without_header(first.names)


def _check_one_log(sources: List[Source], wishes: Wishes) -> None:
    first = sources[0]
    for other in sources[1:]:
        kinds = [
            (part.infer, part.fixed, label_of(part.path, part.names, wishes))
            for part in (first, other)
        ]
        if kinds[0] != kinds[1]:
            raise BadInput(
                f"{first.path} and {other.path} are logs of different formats or labels; "
                "name one of them"
            )
