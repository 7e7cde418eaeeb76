"""The time column, which orders the rows, numbers their days and gives their hour.

    dates and timestamps     as they are; without a zone they count as UTC
    text                     ISO 8601, such as 2019-11-24 00:01:03.979311+00:00
    whole numbers            below 100,000: the number of a day
                             19000101 to 21991231: a date YYYYMMDD
                             10^8 up: seconds, milliseconds, microseconds or nanoseconds since 1970
    `hour` of 8 digits       YYMMDDHH, Avazu's (https://www.kaggle.com/c/avazu-ctr-prediction/data)

A moment never becomes an id, because it never recurs; its hour of the day does.
"""

import datetime
import re
from typing import Any, NamedTuple, Optional

import numpy as np

from semisync.common.errors import BadInput
from semisync.demo.data.columns import Column, column_of
from semisync.demo.data.data_file import Where, shown

_MICROS = 1_000_000
_HOUR = 3600 * _MICROS
_DAY = 24 * _HOUR
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?")
_AVAZU = re.compile(r"\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d.*")  # a date with a time of day


class Times(NamedTuple):
    """The time of each row.

    Attributes:
        moments: int64 [rows], microseconds, to order by.
        days: int32 [rows], from 0.
        hours: int64 [rows], the hour of the day in UTC, or None where only days are known.
    """

    moments: np.ndarray
    days: np.ndarray
    hours: Optional[np.ndarray]


def is_avazu_hour(column: Column) -> bool:
    """Whether every value of the column reads as YYMMDDHH."""
    texts = [text for text in column.texts if text]
    return bool(texts) and all(map(_AVAZU.fullmatch, texts))


def times_of(table: Any, name: str, where: Where) -> Times:
    """Reads the time column of a pyarrow.Table that has rows.

    Raises:
        BadInput: a time is missing or unreadable; the message has the first such row.
    """
    import pyarrow as pa

    stored = table[name]
    missing = stored.is_null().to_numpy()
    if pa.types.is_timestamp(stored.type) or pa.types.is_date(stored.type):
        zone = getattr(stored.type, "tz", None)
        # Not safe: nanoseconds are cut off.
        micros = stored.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64())
        moments = micros.fill_null(0).to_numpy()
    else:
        column = column_of(table, name, where)
        missing = np.array([text == "" for text in column.texts])[column.codes]
        moments = np.zeros(len(column.texts), np.int64)
        present = np.unique(column.codes[~missing])
        moments[present] = _moments(column, present, where)
        moments = moments[column.codes]
    if missing.any():
        raise BadInput(
            f"{where.row(int(np.argmax(missing)))}: column {name!r} is empty, not a time"
        )
    days = moments // _DAY
    return Times(
        moments,
        (days - days.min()).astype(np.int32),
        moments % _DAY // _HOUR if np.any(moments % _DAY) else None,
    )


def _moments(column: Column, present: np.ndarray, where: Where) -> np.ndarray:
    """Microseconds since 1970 of the distinct values that occur."""
    texts = [column.texts[code] for code in present]
    if column.name.lower() == "hour" and is_avazu_hour(column):
        texts = [f"20{t[:2]}-{t[2:4]}-{t[4:6]}T{t[6:]}" for t in texts]
    elif all(map(_NUMBER.fullmatch, texts)):
        return _from_numbers(np.array(texts, np.float64), column.name, where)
    moments = [_parsed(text) for text in texts]
    wrong = [code for code, moment in zip(present, moments) if moment is None]
    if wrong:
        code = min(wrong, key=column.first_row)
        raise BadInput(
            f"{where.row(column.first_row(code))}: column {column.name!r} holds "
            f"{shown(column.texts[code])}, expected a time such as 2019-11-24 00:01:03+00:00"
        )
    return np.array(moments, np.int64)


def _parsed(text: str) -> Optional[int]:
    """Microseconds since 1970 of an ISO 8601 text, or None."""
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)
    return (moment - _EPOCH) // datetime.timedelta(microseconds=1)


def _from_numbers(numbers: np.ndarray, name: str, where: Where) -> np.ndarray:
    """Microseconds since 1970 of numbers, by the module's table of ranges."""
    low, high = float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
    if low >= 0 and high < 100_000:
        return np.floor(numbers).astype(np.int64) * _DAY
    if low >= 19_000_101 and high <= 21_991_231:
        moments = [_parsed(str(int(number))) for number in numbers]
        if None not in moments:
            return np.array(moments, np.int64)
    for micros, digits in ((_MICROS, 8), (1000, 11), (1, 14), (1e-3, 17)):
        if low >= 10**digits and high < 10.0 ** (digits + 3):
            return np.round(numbers * micros).astype(np.int64)
    raise BadInput(
        f"{where.whole}: the time column {name!r} runs from {low:g} to {high:g}: neither days, "
        "dates YYYYMMDD nor seconds since 1970; name another time column or drop it"
    )
