"""Users' histories from files: each user's events, in the order of time.

    histories = read_histories("log/*.parquet", Columns(time="time"))      # a row per event
    histories = read_histories("users.orc", Columns(user="id", item="items"))   # lists of items
    histories = read_histories("LastFM.txt", Columns(form="lines"))        # user item item ...

1. Files, formats and fills of missing values are `migrate.data`'s. A row has a user and one
   item or a list of them; time and labels then have as many values.
2. All rows of a user are one history, sorted by time; equal times, and rows without times, keep the
   order of the files and of the rows in them.
3. A line of the form "lines" is a user and its items, integers with a blank between them.
4. Users and items may be text, whose ids are those of `migrate.sequences.names`. Times may be dates
   or timestamps, which become seconds since 1970 in UTC, or floats, which sort as they are and
   become whole units.

Memory: 24 bytes for an event with its time, 4 for each label, and twice that while it is sorted.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Dict, List, NamedTuple, Optional

import numpy
import pyarrow as pa

from migrate.data import Column, Rows, TextFormat, open_data
from migrate.data.listing import Paths
from migrate.data.rows import lists_of
from migrate.scoring.features import MAKES_TEXT
from migrate.sequences.names import Names, ids_of
from parity.io.text_format import text_format
from semisync.common.errors import BadInput, UsageError

FORMS = ("columns", "lines")
TYPES = {"user": ("text",), "item": ("text",), "time": ("timestamp", "float")}  # but for integers
_LINE = "line"  # the only column of a file of lines
_AT_ONCE = 1 << 16  # rows
_A_SECOND = 10**6  # microseconds
_NO_INTEGERS = ("int64 is expected", ", not numbers")  # how that of a column ends


@dataclass
class Columns:
    """The columns of a history in the files.

    Args:
        user, item: columns of integers; of items also lists of them.
        time: a column of integers or lists of them; None: the files' order is that of time.
        labels: columns of numbers or lists of them.
        form: "columns", or "lines" of a user and its items, which name no columns.
        text: how text files are written, by the fields of `migrate.data.TextFormat`.
        types: of columns that are not of integers: "text" of user and item; of time "timestamp",
            for dates, times or ISO 8601, or "float": then it is no column of lists.

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
    types: Dict[str, str] = field(default_factory=dict)


class Histories(NamedTuple):
    """Each user's events, in the order of time. Each user has at least one event.

    Attributes:
        users: raw ids int64 [U], ascending.
        offsets: int64 [U + 1], where each user's events begin.
        items: raw ids int64 [N].
        times: int64 [N], or None.
        labels: by name, float32 [N].
        names: of "user" and "item" that are text.

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
    names: Dict[str, Names] = {}

    def told(self, kind: str, ids: numpy.ndarray) -> Any:
        """Users or items as the files have them.

        Args:
            kind: "user" or "item".
            ids: int64 [n].

        Returns:
            Their text, a pyarrow array, or the ids.

        Examples:
            >>> from migrate.sequences import Columns, read_histories
            >>> histories = read_histories("clicks.parquet", Columns(time="time"))
            >>> histories.told("user", histories.users).tolist()
            [1, 2]
        """
        return self.names[kind].texts(ids) if kind in self.names else ids

    @property
    def lengths(self) -> numpy.ndarray:
        """How many events each user has: int64 [U]."""
        return numpy.diff(self.offsets)


def read_histories(paths: Paths, columns: Optional[Columns] = None) -> Histories:
    """All histories of the files, in memory.

    Args:
        paths: as `migrate.data.open_data` takes them.
        columns: of a history; by default `Columns()`.

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
    _check_types(columns)
    texts: Dict[str, List[Any]] = {kind: [] for kind in ("user", "item") if kind in columns.types}
    if columns.form == "lines":
        parts = _parts(paths, [Column(_LINE, "ids")], _lines_format(), _of_lines)
    else:
        text = text_format(columns.text)
        parts = _parts(
            paths, _schema(columns), text, lambda rows: _of_columns(rows, columns, texts)
        )
    whole = {name: numpy.concatenate([part[name] for part in parts]) for name in parts[0]}
    names = {kind: Names.of(found, getattr(columns, kind)) for kind, found in texts.items()}
    return _grouped(whole, columns)._replace(names=names)


def _check_types(columns: Columns) -> None:
    for kind, given in columns.types.items():
        if given not in TYPES.get(kind, ()):
            known = ", ".join(f"{kind}: {' or '.join(due)}" for kind, due in TYPES.items())
            raise UsageError(f"types has {kind}: {given}, expected of {known}; others are integers")
    if columns.types and columns.form == "lines":
        raise UsageError("types are of columns, and the form is lines, of integers")
    if "time" in columns.types and columns.time is None:
        raise UsageError(f"types has time: {columns.types['time']}, and no time is named")


def _schema(columns: Columns) -> List[Column]:
    time = columns.time or ""
    known = {
        ("user", "text"): Column(columns.user, "key", "string"),
        ("item", "text"): Column(columns.item, "strings"),
        ("time", "timestamp"): Column(time, "key", "timestamp"),
        ("time", "float"): Column(time, "dense", "float64"),
        ("user", None): Column(columns.user, "dense", "int64"),
        ("item", None): Column(columns.item, "ids"),
        ("time", None): Column(time, "ids"),
    }
    kinds = ("user", "item", "time")[: 2 if columns.time is None else 3]
    found = [known[kind, columns.types.get(kind)] for kind in kinds]
    return found + [Column(name, "numbers", among=(0, 1)) for name in columns.labels]


def _parts(paths: Paths, schema: List[Column], text: Optional[TextFormat], convert: Any) -> Any:
    """The events of each batch of rows, by the name of the column."""
    alone = functools.partial(open_data, rank=0, ranks=1)  # every process reads all of them
    try:
        # "pad" keeps the last rows; what a convert makes is not padded.
        return list(alone(paths, schema, _AT_ONCE, last="pad", text=text, convert=convert))
    except BadInput as error:
        said, advised, _ = str(error).partition(MAKES_TEXT)
        if advised:
            raise BadInput(f"{said}; leave its type out of types") from error
        if said.endswith(_NO_INTEGERS):
            raise BadInput(
                f"{said}, unless types says that it is text, or a time otherwise"
            ) from error
        raise


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


def _of_columns(
    rows: Rows, columns: Columns, texts: Dict[str, List[Any]]
) -> Dict[str, numpy.ndarray]:
    """The events of some rows; their texts, each once, are added to `texts`."""
    table = rows.columns
    offsets, items = lists_of(table[columns.item])
    given, lengths = {"user": table[columns.user], "item": items}, numpy.diff(offsets)
    for kind, found in texts.items():
        found.append(_text(given[kind], getattr(columns, kind)))
    ids = {kind: ids_of(one) if kind in texts else one.to_numpy() for kind, one in given.items()}
    events = {"user": numpy.repeat(ids["user"], lengths), "item": ids["item"]}
    beside = {"time": columns.time} if columns.time is not None else {}
    beside.update({f"label {name}": name for name in columns.labels})
    for key, name in beside.items():
        others, values = _lists(table[name])
        wrong = numpy.flatnonzero(numpy.diff(others) != lengths)
        if len(wrong):
            row = int(wrong[0])
            raise BadInput(
                f"user {given['user'][row]} has {lengths[row]} values of {columns.item!r} and "
                f"{others[row + 1] - others[row]} of {name!r} in a row, expected as many"
            )
        events[key] = values.to_numpy()
    return events


def _text(values: Any, column: str) -> Any:
    """The distinct texts of a column, as large_string."""
    try:
        return values.unique().cast(pa.large_string())
    except pa.ArrowInvalid as error:
        raise BadInput(f"column {column!r} holds text that is not UTF-8") from error


def _lists(array: Any) -> Any:
    """As `lists_of`; a moment, of timestamp[us] or float64, is a list of one number."""
    if pa.types.is_timestamp(array.type):
        array = array.view(pa.int64())
    elif not pa.types.is_float64(array.type):
        return lists_of(array)
    return numpy.arange(len(array) + 1), array


def _grouped(events: Dict[str, numpy.ndarray], columns: Columns) -> Histories:
    users, times = events["user"], events.get("time")
    if not len(users):
        raise BadInput("the files hold no event: every list of items is empty")
    # Both are stable. lexsort sorts by its last key first.
    order = numpy.argsort(users, kind="stable") if times is None else numpy.lexsort((times, users))
    users = users[order]
    if times is not None:
        times = _whole(times[order], columns)
    starts = numpy.flatnonzero(numpy.r_[True, users[1:] != users[:-1]])
    return Histories(
        users[starts],
        numpy.append(starts, len(users)).astype(numpy.int64),
        events["item"][order],
        times,
        {name: events[f"label {name}"][order] for name in columns.labels},
    )


def _whole(times: numpy.ndarray, columns: Columns) -> numpy.ndarray:
    """The times as int64: timestamps in seconds, floats rounded down."""
    kind = columns.types.get("time")
    if kind == "timestamp":
        return times // _A_SECOND
    if kind == "float":
        # So written that a NaN fails too.
        if not (numpy.abs(times) < 2**63).all():
            raise BadInput(f"column {columns.time!r} holds a time that int64 cannot")
        return numpy.floor(times).astype(numpy.int64)
    return times
