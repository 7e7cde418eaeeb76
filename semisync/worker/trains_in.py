"""Whether a run of a session trains: only the optimizers whose train ops it runs need a ticket.

A GAN runs its two train ops in turns. A worker that held a ticket for the one while it waits for a
ticket for the other could wait for a worker that lacks the first: neither would go on.
"""

from typing import Any, Dict, FrozenSet

from semisync.common.compat import fetched_ops
from semisync.common.walks import reachable


class TrainsIn:
    """Decides whether fetches need an op, such as that of a worker state; remembers the answer.

    Args:
        op: a tf.Operation.
    """

    def __init__(self, op):
        self._op = op
        self._known: Dict[FrozenSet[Any], bool] = {}

    def __call__(self, fetches):
        ops = frozenset(fetched_ops(self._op.graph, fetches))
        if ops not in self._known:
            self._known[ops] = self._op in reachable(ops, before)
        return self._known[ops]


def before(op):
    """The ops that an op waits for, a list."""
    return [*(tensor.op for tensor in op.inputs), *op.control_inputs]
