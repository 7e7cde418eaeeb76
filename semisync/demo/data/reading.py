"""Reads a click log from a file or a folder: which columns become which fields.

1. The label becomes the labels, the time the order and the days, and `hour_of_day` where the time
   has one.
2. Left out with a note: columns without a name (a saved index); `propensity_score`, since it
   belongs to the policy that chose the item and not to the click; further columns named like a
   time, and texts that are moments; lists and other nested values; columns with one value only; ids
   that differ in every one of 100 rows or more; and columns that are the label in another form,
   each of whose values (10 rows or more for each) occurs with one label only.
3. Every other column is a field, a number or an id by the rule of `columns`. The columns I1-I13 and
   C1-C26 together are Criteo's, and the I columns its counts.

In Criteo's own layout nothing is left out: its 39 fields are what every tool expects.
"""

import os
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from semisync.common.errors import BadInput
from semisync.common.terminal import say
from semisync.demo.data import columns as kinds
from semisync.demo.data.click_log import ClickLog
from semisync.demo.data.data_file import CRITEO_CATEGORIES, CRITEO_COUNTS, DataFile, Where
from semisync.demo.data.files import (
    Choices,
    files_of,
    label_of,
    listed,
    names_of_times,
    read_files,
)
from semisync.demo.data.hashing import hash_texts
from semisync.demo.data.times import MOMENT, is_avazu_hour, times_of

_HOUR_FIELD = "hour_of_day"
_KEY_ROWS = 100  # fewer rows may differ in every value by chance
_ROWS_PER_VALUE = 10  # fewer may agree on the label by chance


class _Field(NamedTuple):
    name: str
    ids: np.ndarray  # int64 [rows], in time order
    is_number: bool


def _to_stderr(line: str) -> None:
    say(line, error=True)


def read(
    path: Union[str, "os.PathLike[str]"],
    label: Optional[str] = None,
    time: Optional[str] = None,
    drop: Sequence[str] = (),
    categorical: Sequence[str] = (),
    note: Callable[[str], None] = _to_stderr,
) -> ClickLog:
    """Reads a file, or a folder of files, as one click log in time order; ties keep their order.

    Args:
        path: a file or a folder.
        label: the column of 0 and 1; by default the one named label, click, clicked, target or y,
            in any case.
        time: the column to order by; by default the first of timestamp, datetime, time, date, day
            that there is. Without one the rows keep their order and are all of day 0.
        drop: columns to leave out, such as one that is only known after the click.
        categorical: columns whose values are ids although they look like decimal numbers.
        note: is called with one line for each thing left out.

    Returns:
        A log without `truth`.

    Raises:
        BadInput: what is malformed, with the file and the line (of a Parquet
            file, the row).
    """
    choices = Choices(label, time, tuple(drop), tuple(categorical))
    place = pathlib.Path(path)
    files = files_of(place, choices, note)
    table, where = read_files(files, note)
    first = files[0]
    names = [name for name in table.column_names if name not in drop]
    unknown = sorted({*drop, *categorical} - set(table.column_names))
    if unknown:
        raise BadInput(f"{first.path} has no column {unknown[0]!r}; it has {listed(names)}")
    label_name = label_of(first, choices)
    labels = kinds.labels_of(kinds.column_of(table, label_name, where), where)
    if not len(labels):
        raise BadInput(f"{first.path} has no rows; expected clicks and non-clicks")
    time_name = _time_name(table, names, choices, where)
    times = times_of(table, time_name, where) if time_name else None
    order = np.arange(len(labels)) if times is None else np.argsort(times.moments, kind="stable")
    columns = [name for name in names if name not in (label_name, time_name)]
    fields, left_out = _fields(table, columns, first, categorical, order, labels, where)
    for reason, dropped in left_out.items():
        note(f"{first.path.name}: left out {', '.join(dropped)}: {reason}")
    if times is not None and times.hours is not None and _HOUR_FIELD not in names:
        hours = hash_texts(_HOUR_FIELD, map(str, range(24)))[times.hours[order]]
        fields.append(_Field(_HOUR_FIELD, hours, False))
    if not fields:
        raise BadInput(f"{first.path} has no column to learn from beside its label")
    fields.sort(key=lambda field: field.is_number)
    return ClickLog(
        name=place.name or str(place),
        fields=tuple(field.name for field in fields),
        numeric=sum(field.is_number for field in fields),
        ids=np.stack([field.ids for field in fields], axis=1),
        labels=labels[order],
        days=np.zeros(len(labels), np.int32) if times is None else times.days[order],
    )


def _fields(
    table: Any,
    names: Sequence[str],
    first: DataFile,
    categorical: Sequence[str],
    order: np.ndarray,
    labels: np.ndarray,
    where: Where,
) -> Tuple[List[_Field], Dict[str, List[str]]]:
    """The fields of the named columns, and by reason the names of those left out.

    Args:
        first: a file of the log; in Criteo's layout nothing is left out.
        order: the rows' order in time. labels: in the table's order.
    """
    counts = CRITEO_COUNTS if {*CRITEO_COUNTS, *CRITEO_CATEGORIES} <= set(names) else ()
    fields: List[_Field] = []
    left_out: Dict[str, List[str]] = {}
    for name in names:
        reason = None if name in categorical else _reason_by_name(table, name)
        if reason is None:
            column = kinds.column_of(table, name, where)
            if name in categorical:
                column = column._replace(numbers=None)
            elif not first.is_typed and name not in counts:
                column = kinds.as_numbers(column, where)
            field = _field(column, order, where, name in counts)
            reason = _reason_by_values(column, field.is_number, labels)
        if reason is None or first.layout == "criteo":
            fields.append(field)
        else:
            left_out.setdefault(reason, []).append(name)
    return fields, left_out


def _time_name(table: Any, names: Sequence[str], choices: Choices, where: Where) -> Optional[str]:
    """The column to order by, or None; Avazu's `hour` is one although its name says less."""
    if choices.time is not None and choices.time not in names:
        raise BadInput(f"{where.whole} has no time column {choices.time!r}; it has {listed(names)}")
    usual = names_of_times(names)
    if choices.time is not None or usual:
        return choices.time or usual[0]
    if "hour" in names and kinds.is_readable(table["hour"].type):
        return "hour" if is_avazu_hour(kinds.column_of(table, "hour", where)) else None
    return None


def _reason_by_name(table: Any, name: str) -> Optional[str]:
    """Why a column is left out by its name or type alone."""
    if name.startswith(("Unnamed: ", "__index_level")):
        return "no name"
    if name == "propensity_score":
        return "known of the policy, not of the click"
    if names_of_times([name]):
        return "another time"
    if not kinds.is_readable(table[name].type):
        return "neither text, a number nor a boolean"
    return None


def _field(column: kinds.Column, order: np.ndarray, where: Where, is_count: bool) -> _Field:
    """A column as the ids of a field; numbers become buckets."""
    if is_count:
        texts = kinds.count_buckets(column, where)
    elif column.numbers is None:
        texts = column.texts
    else:
        early = column.codes[order[: (len(order) + 1) // 2]]
        texts = kinds.equal_buckets(column.numbers, column.numbers[early])
    ids = hash_texts(column.name, texts)[column.codes[order]]
    return _Field(column.name, ids, is_count or column.numbers is not None)


def _reason_by_values(column: kinds.Column, is_number: bool, labels: np.ndarray) -> Optional[str]:
    """Why a column is left out, from the values as they are, before bucketing can blur them."""
    counts = np.bincount(column.codes)
    clicks = np.bincount(column.codes, weights=labels)[counts > 0]
    counts = counts[counts > 0]
    if len(counts) == 1:
        return "one value only"
    if not is_number and len(counts) == len(labels) >= _KEY_ROWS:
        return "another value in every row"
    pure = bool(((clicks == 0) | (clicks == counts)).all())
    if pure and len(counts) * _ROWS_PER_VALUE <= len(labels) and 0 < clicks.sum() < len(labels):
        return "the label in another form"
    if not is_number and MOMENT.fullmatch(next((text for text in column.texts if text), "")):
        return "moments never come again"
    return None
