"""Variables that every batch changes at once beside the training, even a too stale batch."""

from typing import Dict, Set

from semisync import arguments
from semisync.aggregate import updates as shared

_POLICY, _OPTION = "as the policy says", "as the option batch_norm says"
_SUMMED = "even one that turns out too stale, and its gradients are made of them"
_SHAREABLE = (
    "even one that turns out too stale: --share has them change with the batches that count"
)
_UNKNOWN = "even one that turns out too stale, in a way that --share does not know"
_ASKED, _UNASKED = (_POLICY, _OPTION), (_SHAREABLE, _UNKNOWN, _SUMMED)


def changed_at_once(rewrite, options):
    """The variables that all workers share, and that every batch writes without a training op.

    Args:
        rewrite: a `sentences.Rewrite`.
        options: the `Options`.

    Returns:
        Two lists of (names of variables, a sentence with a place for them): the changes that the
        caller asked for, and those to warn of.
    """
    training = rewrite.training
    updates = shared.updates(rewrite.meta, training.nodes) if training.written_by_batches else ()
    known = {op for op, _ in updates}
    statistics = rewrite.statistics.at_once.difference(share.variable for share in rewrite.shares)

    # The caller's own choices come first: a variable that one of them covers needs no warning.
    def why(op, variable):
        if arguments.is_async(options.mode_of, variable):
            return _POLICY
        if variable in statistics and options.batch_norm == "async":
            return _OPTION
        if variable in training.summed:
            return _SUMMED
        return _SHAREABLE if op in known else _UNKNOWN

    changed: Dict[str, Set[str]] = {}
    written = set(training.written_by_batches.items())
    # Their updates lie inside functions, where `written_by_batches` does not look.
    inside = statistics.difference(training.written_by_batches.values())
    for op, variable in written.union((None, variable) for variable in inside):
        changed.setdefault(why(op, variable), set()).add(variable)
    asked, unasked = (
        [
            (sorted(changed[reason]), "every batch changes {} at once, " + reason)
            for reason in reasons
            if reason in changed
        ]
        for reasons in (_ASKED, _UNASKED)
    )
    return asked, unasked
