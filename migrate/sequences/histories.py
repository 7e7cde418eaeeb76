"""Users' histories from files: what each user met, in the order of time.

    histories = read_histories("log/*.parquet", Columns(time="time"))      # a row per event
    histories = read_histories("users.orc", Columns(user="id", item="items"))   # lists of items
    histories = read_histories("LastFM.txt", Columns(form="lines"))        # user item item ...

1. Files, formats and what becomes of missing values are `migrate.data`'s. A row has a user and one
   item or a list of them; time and labels then have as many values.
2. All rows of a user are one history, sorted by time; equal times, and rows without times, keep the
   order of the files and of the rows in them.
3. A line of the form "lines" is a user and its items, integers with a blank between them.

Memory: 24 bytes for an event with its time, 4 for each label, and twice that while it is sorted.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional

import numpy

from migrate.data import Column, Rows, TextFormat, open_data
from migrate.data.paths import Paths
from migrate.data.rows import lists_of
from semisync.common.errors import BadInput

FORMS = ("columns", "lines")
_LINE = "line"  # the only column of a file of lines
_AT_ONCE = 1 << 16  # rows


@dataclass
class Columns:
    """Where a history stands in the files.

    Args:
        user, item: columns of integers; of items also lists of them.
        time: a column of integers or lists of them; None: the files' order is that of time.
        labels: columns of numbers or lists of them.
        form: "columns", or "lines" of a user and its items, which name no columns.
        text: how text files are written, by the fields of `migrate.data.TextFormat`.

    Examples:
        >>> from migrate.sequences import Columns
        >>> columns = Columns("user", "item", time="time", labels=["clicked"])
    """

    user: str = "user"
    item: str = "item"
    time: Optional[str] = None
    labels: List[str] = field(default_factory=list)
    form: str = "columns"
    text: Optional[Dict[str, Any]] = None


class Histories(NamedTuple):
    """What each user did, in the order of time. Each user has at least one event.

    Attributes:
        users: raw ids int64 [U], ascending.
        offsets: int64 [U + 1], where each user's events begin.
        items: raw ids int64 [N].
        times: int64 [N], or None.
        labels: by name, float32 [N].

    Examples:
        >>> from migrate.sequences import Columns, read_histories
        >>> histories = read_histories("clicks.parquet", Columns(time="time"))
        >>> histories.users.tolist(), histories.lengths.tolist()
        ([1, 2], [4, 4])
    """

    users: numpy.ndarray
    offsets: numpy.ndarray
    items: numpy.ndarray
    times: Optional[numpy.ndarray]
    labels: Dict[str, numpy.ndarray]

    @property
    def lengths(self) -> numpy.ndarray:
        """How many events each user has: int64 [U]."""
        return numpy.diff(self.offsets)


def read_histories(paths: Paths, columns: Optional[Columns] = None) -> Histories:
    """All histories of the files, in memory.

    Args:
        paths: as `migrate.data.open_data` takes them.
        columns: where a history stands; by default `Columns()`.

    Returns:
        `Histories`.

    Raises:
        BadInput: a file is missing or broken, or a row's lists differ in length.
        UsageError: columns that mean nothing.

    Examples:
        >>> from migrate.sequences import Columns, read_histories
        >>> read_histories("clicks.parquet", Columns(time="time")).items.tolist()
        [1, 3, 5, 7, 2, 4, 6, 8]
    """
    columns = columns or Columns()
    if columns.form == "lines":
        parts = _parts(paths, [Column(_LINE, "ids")], _lines_format(), _of_lines)
    else:
        schema = [Column(columns.user, "dense", "int64"), Column(columns.item, "ids")]
        if columns.time is not None:
            schema.append(Column(columns.time, "ids"))
        schema += [Column(name, "numbers") for name in columns.labels]
        text = None if columns.text is None else TextFormat(**columns.text)
        parts = _parts(paths, schema, text, lambda rows: _of_columns(rows, columns))
    whole = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _grouped(whole, columns)


def _parts(paths: Paths, schema: List[Column], text: Optional[TextFormat], convert: Any) -> Any:
    """The events of each batch of rows, by the name of the column."""
    alone = functools.partial(open_data, rank=0, ranks=1)  # every process reads all of them
    return list(alone(paths, schema, _AT_ONCE, last="pad", text=text, convert=convert))


def _lines_format() -> TextFormat:
    return TextFormat(separator="\t", names=[_LINE], values=" ", quote=None)


def _of_lines(rows: Rows) -> Dict[str, numpy.ndarray]:
    offsets, values = lists_of(rows.columns[_LINE])
    lengths, values = numpy.diff(offsets).astype(numpy.int64), values.to_numpy()
    short = numpy.flatnonzero(lengths < 2)
    if len(short):
        given = values[offsets[short[0]] : offsets[short[0] + 1]].tolist()
        raise BadInput(f"a line holds {given or 'nothing'}, expected a user and at least one item")
    first = numpy.zeros(len(values), bool)
    first[offsets[:-1]] = True
    return {"user": numpy.repeat(values[first], lengths - 1), "item": values[~first]}


def _of_columns(rows: Rows, columns: Columns) -> Dict[str, numpy.ndarray]:
    table = rows.columns
    users = table[columns.user].to_numpy()
    offsets, items = lists_of(table[columns.item])
    lengths = numpy.diff(offsets)
    found = {"user": numpy.repeat(users, lengths), "item": items.to_numpy()}
    beside = {"time": columns.time} if columns.time is not None else {}
    beside.update({f"label {name}": name for name in columns.labels})
    for key, name in beside.items():
        others, values = lists_of(table[name])
        wrong = numpy.flatnonzero(numpy.diff(others) != lengths)
        if len(wrong):
            row = wrong[0]
            raise BadInput(
                f"user {users[row]} has {lengths[row]} values of {columns.item!r} and "
                f"{others[row + 1] - others[row]} of {name!r} in a row, expected as many"
            )
        found[key] = values.to_numpy()
    return found


def _grouped(events: Dict[str, numpy.ndarray], columns: Columns) -> Histories:
    users, times = events["user"], events.get("time")
    if not len(users):
        raise BadInput("the files hold no event: every list of items is empty")
    order = numpy.argsort(users, kind="stable") if times is None else numpy.lexsort((times, users))
    users = users[order]
    starts = numpy.flatnonzero(numpy.r_[True, users[1:] != users[:-1]])
    return Histories(
        users[starts],
        numpy.append(starts, len(users)).astype(numpy.int64),
        events["item"][order],
        None if times is None else times[order],
        {name: events[f"label {name}"][order] for name in columns.labels},
    )
