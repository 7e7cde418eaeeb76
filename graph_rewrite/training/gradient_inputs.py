"""The gradient inputs of a graph: the ops that train each variable, and their inputs for gradients.

An optimizer's update of a variable is one of three:

    a training op    (Resource)(Sparse)Apply...: the definition names its inputs "var", "grad" (or
                     "delta") and, sparse, "indices"
    several ops      that share the sum of the rows of each id, such as Adam's of a sparse gradient:
                     they read the sum and the ids as often as they like
    a plain step     ScatterSub, AssignSub and their like on a trainable variable: linear in the
                     gradient, such as gradient descent's of a sparse gradient

A `TrainedVariable` holds the gradient of the batch, as it is before the rows of an id are summed,
and the inputs that take the gradient of the global batch, each id once, instead.
"""

from typing import Any, List, NamedTuple, Optional

from graph_rewrite.graph.ops import ADDS_TO_ROWS, TRAINING_OP
from graph_rewrite.training import unknown_rules
from graph_rewrite.training.batch_flow import BatchFlow
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split
from semisync.common.walks import along

VALUES, INDICES = "values", "indices"

_SUM = "UnsortedSegmentSum"
_UNIQUE = ("Unique", "UniqueV2")
_LINEAR = ("Neg", "Identity", "Mul")


class GradientInput(NamedTuple):
    """Input `number` of the op `node`, which takes the VALUES or the INDICES of a gradient."""

    node: str
    number: int
    part: str


class TrainedVariable(NamedTuple):
    """How a graph trains one variable.

    Attributes:
        node: the NodeDef of the variable.
        ops: names of the ops that write it, or its slots; the variable's own first.
        values, indices: tensors of the batch's gradient; indices is None for a dense one.
        inputs: list of `GradientInput`.
    """

    node: Any
    ops: List[str]
    values: str
    indices: Optional[str]
    inputs: List[GradientInput]


class _SumById(NamedTuple):
    """The names of the ops `sum` and `unique`, and of their inputs `values` and `indices`."""

    sum: str
    unique: str
    values: str
    indices: str


def gradients(trained):
    """The names of the ops that make the batch's gradients of a list of `TrainedVariable`."""
    tensors = [tensor for variable in trained for tensor in (variable.values, variable.indices)]
    return [split(tensor)[0] for tensor in tensors if tensor]


def find_trained(nodes, traits, trainable):
    """Every `TrainedVariable` of a graph, in its order.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        trainable: names of the trainable variables.

    Raises:
        BadInput: one is trained by a rule that is not known, or by a batch that may not reach it.
    """
    flow = BatchFlow(nodes, traits, trainable)
    finder = _Finder(flow)
    by_one_op = [finder.by_one_op(node) for node in nodes.of_type(TRAINING_OP.match)]
    claimed = {name for trained in by_one_op for name in trained.ops}
    # In this order: an op that belongs to an earlier kind is not read as one of a later kind.
    by_several = finder.by_several_ops(claimed)
    claimed.update(name for trained in by_several for name in trained.ops)
    candidates = [name for name in flow.written if name not in claimed]
    steps = [finder.by_step(name) for name in candidates if flow.step_input(name) is not None]
    steps = unknown_rules.check_steps(flow, by_one_op + by_several, steps)
    order = {node.name: number for number, node in enumerate(nodes)}
    trained = sorted(by_one_op + by_several + steps, key=lambda variable: order[variable.ops[0]])
    unknown_rules.check(flow, trained)
    return trained


class _Finder:
    """Reads the updates of a `BatchFlow`'s variables, kind by kind."""

    def __init__(self, flow):
        self._flow, self._nodes, self._written = flow, flow.nodes, flow.written

    def by_one_op(self, node):
        """The `TrainedVariable` of a training op."""
        position = self._flow.traits.position
        inputs = [GradientInput(node.name, position(node, "grad", "delta"), VALUES)]
        if "Sparse" in node.op:
            inputs.append(GradientInput(node.name, position(node, "indices"), INDICES))
        variable = self._written.get(node.name)
        if variable is None or any(taken.number is None for taken in inputs):
            raise BadInput(
                "the training op {} of type {} is not known: no variable, or no input named grad "
                "(and indices)".format(node.name, node.op)
            )
        ops = [node.name]
        values, indices = ([node.input[taken.number] for taken in inputs] + [None])[:2]
        summed = self._sum_by_id(values)
        if summed and indices == summed.unique:
            # Optimizer sums the rows of each id before the op; the batch's gradient is before that.
            values, indices = summed.values, summed.indices
            beside, between = self._row_steps(summed, variable)
            ops += beside
            uses = [use for use in self._uses_of_ids(summed) if use.node.name in between]
            inputs += [GradientInput(use.node.name, use.input, INDICES) for use in uses]
        return TrainedVariable(
            node=self._nodes[variable], ops=ops, values=values, indices=indices, inputs=inputs
        )

    def by_several_ops(self, claimed):
        """The `TrainedVariable`s whose ops share one sum by id, a list.

        Args:
            claimed: names of ops that belong to others, a set.
        """
        trained = []
        for node in self._nodes.of_type(_SUM.__eq__):
            summed = self._sum_by_id(node.name)
            if not summed or not self._addresses_rows(summed):
                continue
            ops = self._writes_below(summed.sum)
            names = sorted({self._written[name] for name in ops} & self._flow.trainable)
            # A sum for several variables, or for ops of another kind, is no update of one variable.
            if len(names) == 1 and claimed.isdisjoint(ops):
                trained.append(self._of_sum(summed, names[0], ops))
        return trained

    def _of_sum(self, summed, variable, ops):
        ops = self._nodes.ordered(ops + self._row_steps(summed, variable)[0])
        ops.sort(key=lambda name: self._written[name] != variable)  # stable: the variable's first
        sums, ids = self._nodes.uses(summed.sum), self._uses_of_ids(summed)
        return TrainedVariable(
            node=self._nodes[variable],
            ops=ops,
            values=summed.values,
            indices=summed.indices,
            inputs=[GradientInput(use.node.name, use.input, VALUES) for use in sums]
            + [GradientInput(use.node.name, use.input, INDICES) for use in ids],
        )

    def by_step(self, name):
        """The `TrainedVariable` of a plain step: the gradient, before it is scaled."""
        node = self._nodes[name]
        step = GradientInput(name, self._flow.step_input(name), VALUES)
        *_, taken = along(step, self._before_scaled)
        number = self._flow.traits.position(node, "indices")
        return TrainedVariable(
            node=self._nodes[self._written[name]],
            ops=[name],
            values=self._nodes[taken.node].input[taken.number],
            indices=None if number is None else node.input[number],
            inputs=[taken] + ([] if number is None else [GradientInput(name, number, INDICES)]),
        )

    def _before_scaled(self, taken):
        """The input of the op that scales a given input; None where none does."""
        maker = self._nodes.maker(self._nodes[taken.node].input[taken.number])
        data = enumerate(self._nodes.makers(maker))
        numbers = [number for number, above in data if above in self._flow.reached]
        # Its input becomes the global batch's gradient, which other uses of the product would see.
        alone = len(self._nodes.uses(maker.name)) == 1
        scales = maker.op in _LINEAR and len(numbers) == 1 and alone
        return GradientInput(maker.name, numbers[0], VALUES) if scales else None

    def _sum_by_id(self, tensor):
        """The `_SumById` that a tensor is, or None."""
        node = self._nodes.maker(tensor)
        if node.op != _SUM:
            return None
        unique, output = split(node.input[1])
        unique = self._nodes[unique]
        # Output 1 of a Unique: for each row, the number of its id among the distinct ones.
        if output != 1 or unique.op not in _UNIQUE:
            return None
        return _SumById(node.name, unique.name, values=node.input[0], indices=unique.input[0])

    def _uses_of_ids(self, summed):
        """Every `Use` of the distinct ids of a sum by id."""
        uses = self._nodes.uses(summed.unique)
        # A Shape counts the ids for the sum itself (_deduplicate_indexed_slices in optimizer.py).
        return [use for use in uses if use.output == 0 and use.node.op != "Shape"]

    def _addresses_rows(self, summed):
        """Whether the ids address rows of a variable directly."""
        uses = self._uses_of_ids(summed)
        return any(use.node.name in self._written and use.input == 1 for use in uses)

    def _row_steps(self, summed, variable):
        """Other ops that add to the rows of a variable, and need only the ids of the batch.

        Such as a decay of the rows that a batch touches (contrib.opt's "W" optimizers).

        Returns:
            The names of these ops, and of all that lies between the ids and them.
        """
        ops, between = [], set()
        for use in self._uses_of_ids(summed):
            name = use.node.name
            if self._written.get(name) != variable or not ADDS_TO_ROWS.match(use.node.op):
                continue
            above = self._nodes.reachable([name], lambda node: self._makers_but_ids(node, summed))
            if not any(self._flow.traits.brings_batch(self._nodes[maker]) for maker in above):
                ops.append(name)
                between |= above
        return ops, between

    def _makers_but_ids(self, node, summed):
        """The names of a node's inputs that depend on a batch, but for the ids."""
        makers = self._flow.reached.intersection(self._nodes.makers(node))
        return makers - {summed.unique}

    def _writes_below(self, name):
        """The names of the ops that write values computed from a tensor."""

        def follow(node):
            # The trained variable's readers lie behind the step, and are no part of it.
            return [] if self._flow.trains(node.name) else self._flow.traits.values_of(node)

        return [below for below in self._nodes.reachable([name], follow) if below in self._written]
