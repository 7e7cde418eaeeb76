"""The split of each history: events to train on, and next items to measure on.

leave one out   the last moment of each user is the test, the one before it the validation; a
                user of fewer than three moments is trained on alone
by time         events before `validation` are trained on; those of a user's at or after it, and
                before `test`, are that user's validation, those at or after `test` its test

A moment is all events of a user at one time; of data without times each event is one. No split cuts
through a moment. Of a part the first event is asked for after all that the user did before, of
several at its moment the one that the files have first; of a ranking all events are asked for.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from typing import Dict, NamedTuple, Optional, Union

import numpy

from migrate.sequences.histories import Histories
from semisync.common.errors import BadInput, UsageError

PARTS = ("validation", "test")


class Ends(NamedTuple):
    """Beginnings of histories.

    Attributes:
        users: their numbers in the histories, [S] int64.
        ends: how many events of each are known, [S] int64.
        stops: up to which event is asked for, where that is more than the one at each end.
        known: how many events of each are known where that is fewer than `ends`: those before the
            moment of the target.
    """

    users: numpy.ndarray
    ends: numpy.ndarray
    stops: Optional[numpy.ndarray] = None
    known: Optional[numpy.ndarray] = None

    def some(self, chosen: numpy.ndarray) -> Ends:
        """The sequences of these numbers, or of this mask."""
        stops, known = (None if part is None else part[chosen] for part in self[2:])
        return Ends(self.users[chosen], self.ends[chosen], stops, known)


class Split(NamedTuple):
    """The events to train on, and those to measure on.

    Attributes:
        train: the sequences to train on, at least two events each.
        asked: by part, "validation" and "test", the events known when the one at `ends` is asked
            for, and the end of the part.

    Examples:
        >>> from migrate.sequences import Columns, SplitAt, read_histories, split
        >>> histories = read_histories("clicks.parquet", Columns(time="time"))
        >>> split(histories, SplitAt()).asked["test"].ends.tolist()
        [3, 3]
    """

    train: Ends
    asked: Dict[str, Ends]


@dataclass
class SplitAt:
    """The beginnings of the parts.

    Without times one moment of each part is left out per user.

    Args:
        validation: a time in the unit of the data's, None, or of timestamps also as text, in UTC,
            such as "2024-01-31" or "2024-01-31T12:00:00".
        test: the same.

    Examples:
        >>> from migrate.sequences import Columns, SplitAt, read_histories, split
        >>> histories = read_histories("clicks.parquet", Columns(time="time"))
        >>> split(histories, SplitAt(validation=5, test=7)).train.ends.tolist()
        [2, 2]
    """

    validation: Union[int, str, None] = None
    test: Union[int, str, None] = None


def split(histories: Histories, at: SplitAt) -> Split:
    """The parts of all histories.

    Args:
        histories: from `read_histories`.
        at: where the parts begin.

    Returns:
        A `Split`.

    Raises:
        UsageError: times that mean nothing.
        BadInput: nothing is left to train on or to measure.

    Examples:
        >>> from migrate.sequences import Columns, SplitAt, read_histories, split
        >>> histories = read_histories("clicks.parquet", Columns(time="time"))
        >>> split(histories, SplitAt()).train.ends.tolist()
        [2, 2]
    """
    lengths = histories.lengths
    if at.validation is None and at.test is None:
        begins, starts = moments(histories), histories.offsets[:-1]
        last = begins[histories.offsets[1:] - 1]
        # The moment before the last; a user's first one if there are not three.
        before = begins[numpy.maximum(last - 1, starts)]
        ends, stops = (
            {"validation": before - starts, "test": last - starts},
            [last - starts, lengths],
        )
        there = dict.fromkeys(PARTS, before > starts)
        known = numpy.where(before > starts, before - starts, lengths)
    else:
        first, second = _times(histories, at)
        known, later = _before(histories, first), _before(histories, second)
        ends, stops = {"validation": known, "test": later}, [later, lengths]
        there = {"validation": (known > 0) & (known < later), "test": (later > 0)}
        there["test"] &= later < lengths
    asked = {
        part: Ends(numpy.arange(len(lengths)), ends[part], stop).some(there[part])
        for part, stop in zip(PARTS, stops)
    }
    found = Split(Ends(numpy.arange(len(lengths)), known).some(known >= 2), asked)
    for name, part in (("train on", found.train), *found.asked.items()):
        if not len(part.users):
            raise BadInput(
                f"no history of the {len(lengths)} has events to {name}"
                if name == "train on"
                else f"no history of the {len(lengths)} has an event for the {name}, and one before"
            )
    return found


def moments(histories: Histories) -> numpy.ndarray:
    """The index at which the moment of each event begins, int64 [N + 1]; the last one is N."""
    begins = numpy.ones(len(histories.items) + 1, bool)
    if histories.times is not None:
        begins[1:-1] = histories.times[1:] != histories.times[:-1]
        begins[histories.offsets] = True
    return numpy.maximum.accumulate(numpy.where(begins, numpy.arange(len(begins)), 0))


def at_one_time(histories: Histories) -> float:
    """The share of the events that share their moment with another."""
    counts = numpy.unique(moments(histories)[:-1], return_counts=True)[1]
    return float(counts[counts > 1].sum() / counts.sum())


def _times(histories: Histories, at: SplitAt) -> tuple:
    first, second = seconds(at.validation, "the split is"), seconds(at.test, "the split is")
    if first is None or second is None or first >= second:
        raise UsageError(
            f"the split is at {at.validation} for the validation and {at.test} for the test; give "
            "both, the test's later"
        )
    if histories.times is None:
        raise UsageError("a split by time needs the column of times; name it in the data's part")
    return first, second


def seconds(time: Union[int, str, None], what: str, known: str = "") -> Optional[int]:
    """A time as a number: of text the seconds since 1970 in UTC, a fraction rounded up.

    Args:
        what: begins the message of the UsageError for other text.
        known: further expected forms, for that error.
    """
    if not isinstance(time, str):
        return time
    try:
        moment = datetime.datetime.fromisoformat(time)
    except ValueError as error:
        raise UsageError(
            f"{what} at {time!r}, expected {known}a number, or a time such as 2024-01-31T12:00:00"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return math.ceil(moment.timestamp())


def _before(histories: Histories, time: int) -> numpy.ndarray:
    assert histories.times is not None
    earlier = numpy.append(0, numpy.cumsum(histories.times < time))
    found: numpy.ndarray = numpy.diff(earlier[histories.offsets])
    return found
