"""Tables into a click log: which column becomes which field.

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

import bisect
import itertools
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from semisync.common.errors import BadInput
from semisync.demo.data.click_log import ClickLog
from semisync.demo.data.hashing import hash_texts
from semisync.demo.data.readers import buckets
from semisync.demo.data.readers.clock import clock_of, is_avazu_hour, is_moment
from semisync.demo.data.readers.columns import Column, as_numbers, column_of, is_readable, labels_of
from semisync.demo.data.readers.roles import Wishes, label_of, listed, other_times, time_of
from semisync.demo.data.readers.source import CRITEO_CATEGORIES, CRITEO_COUNTS, Source, Where

_HOUR_FIELD = "hour_of_day"
_KEY_ROWS = 100  # fewer rows may differ in every value by chance
_ROWS_A_VALUE = 10  # fewer may agree on the label by chance


class _Field(NamedTuple):
    name: str
    ids: np.ndarray  # int64 [rows], in time order
    is_number: bool


class _Rows(NamedTuple):
    """What every column is judged by."""

    labels: np.ndarray  # float32 [rows], in the files' order
    order: np.ndarray  # int64 [rows], the rows by time
    where: Where
    infer: bool  # tell numbers from ids by their text
    categorical: Sequence[str]


def assemble(sources: Sequence[Source], wishes: Wishes, note: Callable[[str], None]) -> ClickLog:
    """Puts the rows of all sources into one log, in time order; ties keep the files' order.

    Raises: BadInput for a label, a time or a number that cannot be read, with file and line; for a
        wish that names no column; and where no field is left.
    """
    label = _label(sources[0], wishes)
    table, where = _joined(sources, note)
    names = [name for name in table.column_names if name not in wishes.drop]
    unknown = sorted({*wishes.drop, *wishes.categorical} - set(table.column_names))
    if unknown:
        raise BadInput(f"{sources[0].path} has no column {unknown[0]!r}; it has {listed(names)}")
    labels = labels_of(column_of(table, label, where), where)
    if not len(labels):
        raise BadInput(f"{sources[0].path} has no rows; expected clicks and non-clicks")
    time = time_of(where.whole, names, wishes) or _avazu_hour(table, names, where)
    clock = clock_of(table, time, where) if time else None
    order = np.arange(len(labels)) if clock is None else np.argsort(clock.moments, kind="stable")
    rows = _Rows(labels, order, where, sources[0].infer, wishes.categorical)

    left_out = _left_out_unseen(table, names, {label, time}, wishes)
    features = [name for name in names if name not in {label, time}.union(*left_out.values())]
    fields: List[_Field] = []
    for name in features:
        field, reason = _field(table, name, rows, name in _criteo_counts(names))
        if reason is None or sources[0].fixed:
            fields.append(field)
        else:
            left_out.setdefault(reason, []).append(name)
    for reason, dropped in left_out.items():
        note(f"{sources[0].path.name}: left out {', '.join(dropped)}: {reason}")
    if clock is not None and clock.hours is not None and _HOUR_FIELD not in features:
        ids = hash_texts(_HOUR_FIELD, map(str, range(24)))[clock.hours[order]]
        fields.append(_Field(_HOUR_FIELD, ids, False))
    if not fields:
        raise BadInput(f"{sources[0].path} has no column to learn from beside its label")
    days = np.zeros(len(labels), np.int32) if clock is None else clock.days[order]
    return _log(sources[0].path.name, fields, labels[order], days)


def _criteo_counts(names: Sequence[str]) -> Sequence[str]:
    return CRITEO_COUNTS if {*CRITEO_COUNTS, *CRITEO_CATEGORIES} <= set(names) else ()


def _joined(sources: Sequence[Source], note: Callable[[str], None]) -> Tuple[Any, Where]:
    """One table of all rows, and the naming of a row of it."""
    import pyarrow as pa

    tables = [source.table() for source in sources]
    if len({source.names for source in sources}) > 1:
        note("the files differ in their columns: the field 'file' tells which a row came from")
        tables = [
            table.append_column("file", pa.repeat(source.path.stem, table.num_rows))
            for table, source in zip(tables, sources)
        ]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise BadInput(
            f"{sources[0].path.parent} holds files whose columns differ in type: {error}"
        ) from error
    ends = list(itertools.accumulate(table.num_rows for table in tables))

    def named(row: int) -> str:
        which = bisect.bisect_right(ends, row)
        return sources[which].where(row - (ends[which - 1] if which else 0))

    path = sources[0].path
    return table, Where(str(path if len(sources) == 1 else path.parent), named)


def _label(source: Source, wishes: Wishes) -> str:
    label = label_of(source.path, source.names, wishes)
    if label is None:
        wanted = repr(wishes.label) if wishes.label else "label, click, clicked, target or y"
        raise BadInput(
            f"{source.path} has no column {wanted}; it has {listed(source.names)}; name its label"
        )
    return label


def _avazu_hour(table: Any, names: Sequence[str], where: Where) -> Optional[str]:
    """Avazu's `hour`, which is a time although its name says less."""
    if "hour" not in names or not is_readable(table["hour"].type):
        return None
    return "hour" if is_avazu_hour(column_of(table, "hour", where)) else None


def _left_out_unseen(
    table: Any, names: Sequence[str], taken: Set[Optional[str]], wishes: Wishes
) -> Dict[str, List[str]]:
    """{reason: columns}, by name and type alone; a column declared categorical stays."""
    reasons = {
        "no name": [n for n in names if n.startswith(("Unnamed: ", "__index_level"))],
        "known of the policy, not of the click": [n for n in names if n == "propensity_score"],
        "another time": list(other_times(names, wishes)),
        "neither text, a number nor a boolean": [
            n for n in names if not is_readable(table[n].type)
        ],
    }
    kept = taken.union(wishes.categorical)
    left_out: Dict[str, List[str]] = {}
    for reason, found in reasons.items():
        found = [name for name in found if name not in kept]
        kept.update(found)
        if found:
            left_out[reason] = found
    return left_out


def _field(table: Any, name: str, rows: _Rows, is_count: bool) -> Tuple[_Field, Optional[str]]:
    """A column as a field, and the reason to leave it out, if there is one."""
    column = column_of(table, name, rows.where)
    if rows.infer and not is_count and name not in rows.categorical:
        column = as_numbers(column, rows.where)
    is_number = column.numbers is not None and name not in rows.categorical
    if is_count:
        texts = buckets.count_buckets(column, rows.where)
    elif column.numbers is None:
        texts = column.texts
    elif is_number:
        early = column.codes[rows.order[: (len(rows.order) + 1) // 2]]
        texts = buckets.equal_buckets(column.numbers, column.numbers[early])
    else:
        texts = [repr(float(number)) for number in column.numbers]
    ids = hash_texts(name, texts)[column.codes]
    field = _Field(name, ids[rows.order], is_number or is_count)
    return field, _reason_against(column, field.is_number, rows.labels)


def _reason_against(column: Column, is_number: bool, labels: np.ndarray) -> Optional[str]:
    """Judges the values as they are, before bucketing can blur them."""
    counts = np.bincount(column.codes)
    clicks = np.bincount(column.codes, weights=labels)[counts > 0]
    counts = counts[counts > 0]
    if len(counts) == 1:
        return "one value only"
    if not is_number and len(counts) == len(labels) >= _KEY_ROWS:
        return "another value in every row"
    pure = bool(((clicks == 0) | (clicks == counts)).all())
    if pure and len(counts) * _ROWS_A_VALUE <= len(labels) and 0 < clicks.sum() < len(labels):
        return "the label in another form"
    if not is_number and is_moment(next((text for text in column.texts if text), "")):
        return "moments never come again"
    return None


def _log(name: str, fields: List[_Field], labels: np.ndarray, days: np.ndarray) -> ClickLog:
    """Puts the categorical fields first; the order is kept otherwise."""
    fields = sorted(fields, key=lambda field: field.is_number)
    return ClickLog(
        name=name,
        fields=tuple(field.name for field in fields),
        numeric=sum(field.is_number for field in fields),
        ids=np.stack([field.ids for field in fields], axis=1),
        labels=labels,
        days=days,
    )
