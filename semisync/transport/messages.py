"""The messages of workers to the chief, and their meaning.

    kind        meaning
    JOINED      a worker begins, or begins again after a run that failed: it holds no ticket.
                `ticket` is the last one that one of its batches has used
    REPEATS     the run of its next batch repeats a failed one: if the batch of `ticket`
                came, the next one is the same
    DRAWN       the worker holds the ticket `drawn`
    STAGED      every PS holds its part of the batch; `waited` is how long the ticket took, in us
    WITHHELD    the batch was too stale when its gradient was ready, and was not sent
    NONFINITE   a gradient held a NaN or an infinity, and the batch was not sent
    ALIVE       the worker lives, whatever it waits for or computes; from its watchdog
    LEFT        the worker's session ends; the ticket was not used, unless it was reported before
    DISAGREED   the worker's settings differ from the chief's; `member` has the difference
    WAKE        from the chief, to itself: stop waiting

`drawn` is NEVER_DRAWN or, with STAGED, WITHHELD and NONFINITE too, the ticket that the worker holds
next: a batch costs one message.

`session` counts up with each JOINED of a process. A parameter server may still execute a request
that a worker has given up, such as a draw over a connection that broke: the resulting message is of
an earlier session, and its sender no longer knows the ticket that it names.
"""

from typing import NamedTuple

JOINED, DRAWN, STAGED, WITHHELD, LEFT, DISAGREED, WAKE, NONFINITE, REPEATS, ALIVE = range(10)
NEVER_DRAWN = -1
BATCH = 5  # the numbers of a message but for `drawn`


class Message(NamedTuple):
    """One message from a worker to the chief; see the module for its numbers."""

    member: str
    kind: int
    ticket: int
    token: int
    waited: int
    drawn: int = NEVER_DRAWN
    session: int = 0
