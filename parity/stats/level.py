"""How sure the intervals are, for everything that is compared within a block.

    with parity.at_confidence(0.95):
        found = parity.compare(labels, baseline, candidate)

Two one-sided tests at alpha pass where the interval of confidence 1 - 2 alpha lies inside the
margin. The level holds for one thread or task, and a Comparison keeps the one that it was made at.
What no row shows (parity.stats.equivalence.unseen) is judged at 95 %, whatever the level.
"""

import contextlib
import contextvars
from typing import Iterator

from semisync.common.errors import UsageError

CONFIDENCE = 0.9  # unless said otherwise

_LEVEL = contextvars.ContextVar("confidence", default=CONFIDENCE)


def confidence() -> float:
    """Of an interval, such as 0.9."""
    return _LEVEL.get()


def alpha() -> float:
    """Of each one-sided test, such as 0.05."""
    return (1 - _LEVEL.get()) / 2


@contextlib.contextmanager
def at_confidence(level: float) -> Iterator[None]:
    """Has the intervals of all comparisons in the block hold the truth with that chance.

    Raises: UsageError unless it is from 0.5 to below 1.
    """
    if not 0.5 <= level <= 0.99999:
        raise UsageError(
            f"the confidence is {level}; that of an interval is expected, from 0.5 to 0.99999, "
            "such as 0.9"
        )
    before = _LEVEL.set(level)
    try:
        yield
    finally:
        _LEVEL.reset(before)
