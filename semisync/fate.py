"""The fates of a batch."""

import enum


class Fate(enum.IntEnum):
    """A batch's fate: PENDING until decided, then one of the others, which is final.

    Attributes:
        PENDING: not decided yet.
        ADMITTED: counted fully.
        DECAYED: counted with a weight between 0 and 1.
        STALE: too late: counted with weight 0, or its slot was given back.
        LOST: its worker was killed, or silent for too long.
        NONFINITE: a gradient held a NaN or an infinity; another batch has its slot.
        REPEATED: counted already: its run failed once it had come, and was repeated.

    Examples:
        >>> fate, staleness = 2, 5  # what a session fetches from opt.fate
        >>> semisync.Fate(fate).name
        'DECAYED'
    """

    PENDING = 0
    ADMITTED = 1  # counted fully
    DECAYED = 2  # counted with a weight between 0 and 1
    STALE = 3  # too late: counted with weight 0, or its slot was given back
    LOST = 4  # its worker was killed, or silent for too long
    NONFINITE = 5  # a gradient held a NaN or an infinity: another batch has its slot
    REPEATED = 6  # counted already: its run failed once it had come, and was repeated


PENDING, ADMITTED, DECAYED, STALE, LOST, NONFINITE, REPEATED = Fate


def of_weight(weight):
    """The fate of a batch that was applied with `weight`."""
    if weight == 1:
        return Fate.ADMITTED
    return Fate.STALE if weight == 0 else Fate.DECAYED
