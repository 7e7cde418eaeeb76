"""Reads a click log from a file or a folder; the format is told by the content.

    Parquet      the magic bytes PAR1
    Criteo       tab-separated, without a header: label, 13 counts, 26 hexadecimal categories
    delimited    a header, then rows parted by tabs, commas or semicolons (whichever the header
                 has, tried in that order); quoted values may not hold a line break

A folder means all its data files that have a label, as one log (`folder`). Notes about what was
left out go to `note`, stderr by default; `assemble` says which columns become which fields.
"""

import os
import pathlib
import sys
from typing import Callable, Optional, Sequence, Union

from semisync.demo.data.click_log import ClickLog
from semisync.demo.data.readers.assemble import Wishes, assemble
from semisync.demo.data.readers.folder import sources_of

__all__ = ["read"]


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr)


def read(
    path: Union[str, "os.PathLike[str]"],
    label: Optional[str] = None,
    time: Optional[str] = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    note: Callable[[str], None] = _to_stderr,
) -> ClickLog:
    """Reads a file, or a folder of files, as one click log in time order.

    Args:
        path: a file or a folder.
        label: the column of 0 and 1; by default the one named label, click, clicked, target or y,
            in any case.
        time: the column to order by; by default the first of timestamp, datetime, time, date, day
            that there is. Without one the rows keep their order and are all of day 0.
        drop: columns to leave out, such as one that is only known after the click.
        categorical: columns whose values are ids although they look like decimal numbers.
        note: is called with one line for each thing left out.

    Returns: a log without `truth`.

    Raises: BadInput in one sentence; for a malformed row it names the file and the line (of a
        Parquet file, the row).
    """
    place = pathlib.Path(path)
    wishes = Wishes(label, time, tuple(drop), tuple(categorical))
    sources = sources_of(place, wishes, note)
    log = assemble(sources, wishes, note)
    return log._replace(name=place.name or str(place))
