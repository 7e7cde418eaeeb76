"""The messages of workers to the chief, and what each says.

    kind        meaning
    JOINED      a worker's session begins; only the kind counts
    DRAWN       the worker holds the ticket `drawn`; it has given up any other ticket
    STAGED      every PS holds its part of the batch; `waited` is how long the ticket took, in us
    WITHHELD    the batch was too stale when its gradient was ready, and was not sent
    NONFINITE   a gradient held a NaN or an infinity, and the batch was not sent
    LEFT        the worker's session ends; the ticket was not used, unless it was told of before
    DISAGREED   the worker's settings differ from the chief's; `member` says how
    WAKE        from the chief, to itself: stop waiting

`drawn` is NEVER_DRAWN or, with STAGED, WITHHELD and NONFINITE too, the ticket that the worker holds
next: a batch costs one message.
"""

from typing import NamedTuple

JOINED, DRAWN, STAGED, WITHHELD, LEFT, DISAGREED, WAKE, NONFINITE = range(8)
NEVER_DRAWN = -1
BATCH = 4  # the numbers of a message that are about a batch


class Message(NamedTuple):
    """One message from a worker to the chief; see the module for its numbers."""

    member: str
    kind: int
    ticket: int
    token: int
    waited: int
    drawn: int = NEVER_DRAWN
