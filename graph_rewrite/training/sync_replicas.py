"""The ops of tf.train.SyncReplicasOptimizer between the gradients and the training ops.

    worker   ApplyGradient on a variable's accumulator -> dequeues a token -> assigns it to its
             local step: that is the train op
    chief    TakeGradient of the accumulator -> the training ops -> the global step -> enqueues
             the next tokens, in a queue runner

None of this runs in the rewritten graph: the batch's gradient is the one that was pushed, the
global batch's replaces the one that was taken, and the train op sets the local step, with no token.
"""

import re
from typing import NamedTuple, Optional

from graph_rewrite.graph.ops import ACCUMULATES
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split

_TAKE = re.compile("(Resource|Sparse)?AccumulatorTakeGradient$")
_DEQUEUE = re.compile("QueueDequeue(V2)?$")
_ENQUEUE = re.compile("QueueEnqueue(Many)?(V2)?$")


class Pushed(NamedTuple):
    """The gradient that one process pushes: tensors, as in `TrainedVariable`."""

    values: str
    indices: Optional[str]


class SyncReplicas:
    """The ops of the SyncReplicasOptimizers of a graph; without any, every list is empty.

    Attributes:
        replicas_to_aggregate: their numbers of gradients per global step, a set.
        train_ops: names of the ops that assign a token to the local step.
        unused: names of the ops that nothing needs any more.
        waited_for: names of the ops for which these waited, and the train op still waits.
    """

    def __init__(self, nodes, traits):
        self._nodes = nodes
        self._pushed = {}
        self.replicas_to_aggregate = set()
        takes = nodes.of_type(_TAKE.match)
        handles = {split(node.input[0])[0] for node in takes}  # accumulators that a chief reads
        applies = [
            node for node in nodes.of_type(ACCUMULATES.match) if split(node.input[0])[0] in handles
        ]
        for node in applies:
            values = node.input[traits.position(node, "gradient", "gradient_values")]
            number = traits.position(node, "gradient_indices")
            indices = None if number is None else node.input[number]
            self._pushed[split(node.input[0])[0]] = Pushed(values, indices)
        for node in takes:
            required = nodes.maker(node.input[traits.position(node, "num_required")])
            if required.op == "Const":
                value = required.attr["value"].tensor
                # make_tensor_proto writes a scalar as int_val.
                self.replicas_to_aggregate.update(value.int_val)
        # The token queue is known by its place alone: its dequeue waits for the accumulators, and
        # the token goes to the worker's local step.
        after = set().union(*[nodes.users(node.name) for node in applies])
        dequeues = [nodes[name] for name in sorted(after) if _DEQUEUE.match(nodes[name].op)]
        queues = {split(node.input[0])[0] for node in dequeues}
        enqueues = [
            node for node in nodes.of_type(_ENQUEUE.match) if split(node.input[0])[0] in queues
        ]
        self.train_ops = sorted(
            {
                use.node.name
                for node in dequeues
                for use in nodes.uses(node.name)
                if use.node.op in ("Assign", "AssignVariableOp")
            }
        )
        self.unused = {n.name for n in takes + applies + dequeues + enqueues}
        self.waited_for = sorted(
            {
                name
                for user in [node.name for node in applies + dequeues] + self.train_ops
                for name in nodes.control_inputs(nodes[user])
            }
            - self.unused
        )

    def own(self, trained):
        """A `TrainedVariable` with this process's gradient in place of the one that is taken."""
        taken = self._nodes.maker(trained.values)
        if not _TAKE.match(taken.op):
            return trained
        pushed = self._pushed.get(split(taken.input[0])[0])
        if pushed is None:
            raise BadInput(
                "nothing pushes a gradient for {}, which {} takes: export the graph of a "
                "worker".format(trained.node.name, taken.name)
            )
        return trained._replace(values=pushed.values, indices=pushed.indices)
