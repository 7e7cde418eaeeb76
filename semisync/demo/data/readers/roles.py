"""Which column is the label and which the time, by name."""

from typing import NamedTuple, Optional, Sequence, Tuple

from semisync.common.errors import BadInput
from semisync.demo.data.readers.rescan import shown

LABELS = ("label", "click", "clicked", "target", "y")
TIMES = ("timestamp", "datetime", "time", "date", "day")


class Wishes(NamedTuple):
    """The caller's own choices; names are matched exactly.

    Attributes:
        label, time: a column's name, or None to go by the usual names.
        drop: columns to leave out.
        categorical: columns that hold ids although they look like decimal numbers.
    """

    label: Optional[str] = None
    time: Optional[str] = None
    drop: Tuple[str, ...] = ()
    categorical: Tuple[str, ...] = ()


def label_of(path: object, names: Sequence[str], wishes: Wishes) -> Optional[str]:
    """The label's column, or None where there is none; `path` is for the error alone.

    Raises: BadInput where two columns could be it.
    """
    if wishes.label is not None:
        return wishes.label if wishes.label in names else None
    found = [name for name in names if name.lower() in LABELS and name not in wishes.drop]
    if len(found) > 1:
        raise BadInput(
            f"{path}: the columns {found[0]!r} and {found[1]!r} could both be the label; name one "
            "and drop the other if it is only known after the click"
        )
    return found[0] if found else None


def time_of(path: object, names: Sequence[str], wishes: Wishes) -> Optional[str]:
    """The column to order by, or None where there is none.

    Raises: BadInput where the caller named one that is not there.
    """
    if wishes.time is not None:
        if wishes.time not in names:
            raise BadInput(f"{path} has no time column {wishes.time!r}; it has {listed(names)}")
        return wishes.time
    found = other_times(names, wishes)
    return found[0] if found else None


def other_times(names: Sequence[str], wishes: Wishes) -> Sequence[str]:
    """Columns with the name of a time, the likeliest first."""
    found = [name for name in names if name.lower() in TIMES and name not in wishes.drop]
    return sorted(found, key=lambda name: TIMES.index(name.lower()))


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names as an error lists them."""
    return ", ".join(map(shown, names[:most])) + (", ..." if len(names) > most else "")
