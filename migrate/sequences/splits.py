"""Which part of each history is trained on, and which next items are asked for to measure.

leave one out   the last event of each user is the test, the one before it the validation; a
                user of fewer than three events is trained on alone
by time         events before `validation` are trained on; the first of a user's at or after it,
                and before `test`, is that user's validation, the first at or after `test` its
                test. Each is asked for after all that the user did before
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
    """

    users: numpy.ndarray
    ends: numpy.ndarray
    stops: Optional[numpy.ndarray] = None

    def some(self, chosen: numpy.ndarray) -> Ends:
        """Those of these numbers, or of this mask."""
        stops = None if self.stops is None else self.stops[chosen]
        return Ends(self.users[chosen], self.ends[chosen], stops)


class Split(NamedTuple):
    """Which events are trained on, and which are asked for to measure.

    Attributes:
        train: what is trained on, at least two events each.
        asked: by part, "validation" and "test", what is known when the event at `ends` is asked
            for, and where the part stops.

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
    """Where the parts begin.

    Without times one event of each part is left out per user.

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
        out = numpy.where(lengths >= 3, 2, 0)
        ends, stops = {"validation": lengths - 2, "test": lengths - 1}, [lengths - 1, lengths]
        there = dict.fromkeys(PARTS, out > 0)
        known = lengths - out
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


def _times(histories: Histories, at: SplitAt) -> tuple:
    first, second = _seconds(at.validation), _seconds(at.test)
    if first is None or second is None or first >= second:
        raise UsageError(
            f"the split is at {at.validation} for the validation and {at.test} for the test; give "
            "both, the test's later"
        )
    if histories.times is None:
        raise UsageError("a split by time needs the column of times; name it in the data's part")
    return first, second


def _seconds(time: Union[int, str, None]) -> Optional[int]:
    """Of text those since 1970 in UTC, a fraction rounded up."""
    if not isinstance(time, str):
        return time
    try:
        moment = datetime.datetime.fromisoformat(time)
    except ValueError as error:
        raise UsageError(
            f"the split is at {time!r}, expected a number, or a time such as 2024-01-31T12:00:00"
        ) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return math.ceil(moment.timestamp())


def _before(histories: Histories, time: int) -> numpy.ndarray:
    assert histories.times is not None
    earlier = numpy.append(0, numpy.cumsum(histories.times < time))
    found: numpy.ndarray = numpy.diff(earlier[histories.offsets])
    return found
