"""Whether a paced global batch of siblings in turns can still become whole.

A worker whose batch waits for its global step begins no other run (`semisync.wrapped.turns`). If
every worker waits, for one sibling or another, no more batches come: after the end of a worker's
data, or a batch that is not finite. Then the smallest of the incomplete global batches is applied
as it is, and the workers that waited for it go on.

While there are fewer workers than batches in a global step, and none has left, others may be about
to begin: nothing is applied until `patience` has passed without one.
"""


def is_complete(ledger):
    """Whether a `Ledger` has a whole global batch."""
    return len(ledger.pending) >= ledger.batches_per_step


def all_wait(ledgers):
    """Whether every worker of some `Ledger`s waits for a global step, and none can be whole.

    Their threads cannot change this meanwhile: a batch that is pending stays so until its global
    step.
    """
    waiting = {_process(commit.member) for one in ledgers for commit in list(one.pending)}
    members = {_process(member) for one in ledgers for member in list(one.members)}
    return waiting >= members and not any(map(is_complete, ledgers))


def is_next(ledger, ledgers):
    """Whether a `Ledger` is the one whose global batch is applied as it is, when all wait."""
    begun = [one for one in ledgers if one.pending]
    return bool(begun) and min(begun, key=lambda one: len(one.pending)) is ledger


def may_grow(ledger):
    """Whether new workers may still come."""
    return len(ledger.members) < ledger.batches_per_step and not ledger.gone


def _process(member):
    """The common part of the names of a process's members, see `worker.operations`."""
    return member.rpartition(" ")[0] or member
