"""Ops behind a job's train op, which wait for it and write a variable.

    with tf.control_dependencies([train_op]):
        clipped = [weight.assign(tf.clip_by_value(weight, -0.01, 0.01)) for weight in weights]

So jobs clip and normalise weights, copy them into a target network, average them. In the plain job
these ops run after the step is applied. A worker's train op ends with its batch, before the chief
applies the global batch. So the chief runs copies of them, once per global step, after it, and
before the step is published:

1. Each such op whose inputs do not depend on a batch is copied, with all of its inputs, down to the
   variables. The copies wait for the chief's step, and so do copied reads of variables, which for a
   reference variable are outside of the control dependencies. They are placed beside the variable
   that is written.
2. The ops themselves write nothing that lasts any more; a worker may fetch them to train.
3. Ops that wait for them wait for the train op instead, through a stand-in.

An op that writes a trained variable and depends on a batch is refused by its name, and so is any
that cannot be copied. An op that depends on a batch and writes another variable, such as a mean of
losses, stays each worker's own; the log names it.
"""

from typing import Any, Dict

from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.op_traits import OpTraits
from graph_rewrite.graph.ops import ENTER, VARIABLES
from graph_rewrite.patterns.variables import initialises
from semisync.common.compat import raw_ops, tf
from semisync.common.errors import UsageError
from semisync.common.sentences import some_of
from semisync.common.walks import in_order, reachable
from semisync.wrapped import plain_step

_SCOPE = "behind_"  # prefix of the names of copies, after the optimizer's


def move(sibling, siblings):
    """Moves the ops behind an optimizer's train op, in the default graph, into the chief's step.

    Args:
        sibling: the `Sibling` of the optimizer.
        siblings: those of the graph.

    Raises:
        UsageError: an op cannot be moved, and would write a trained variable before the step.
    """
    after = set(reachable([sibling.train_op], _following))
    if any(_may_write(op) for op in after):
        _Move(sibling, siblings, {op.name for op in after}).make()


def _following(op):
    """The ops that wait for an op, or take its outputs."""
    return [*op._control_outputs, *(user for tensor in op.outputs for user in tensor.consumers())]


def _may_write(op):
    return any(t.dtype._is_ref_dtype or t.dtype == tf.resource for t in op.inputs)


class _Move:
    def __init__(self, sibling, siblings, after):
        self._graph = tf.get_default_graph()
        graph_def = self._graph.as_graph_def()
        self._nodes = Nodes.of(graph_def)
        self._traits = OpTraits(self._nodes, graph_def.library)
        self._sibling, self._after = sibling, after
        self._train_ops = {one.train_op.name for one in siblings}
        self._counted = {one.global_step.name for one in siblings}
        self._trained = {v.op.name for one in siblings for v in one.variables}
        own = {variable.op.name for variable in tf.local_variables()}
        every = {variable.op.name for variable in tf.global_variables()}
        self._shared = every.union(self._trained) - own - self._counted
        sources = [node.name for node in self._nodes if self._traits.brings_batch(node)]
        self._fed = self._traits.flow(own.intersection(self._nodes.by_name).union(sources))

    def make(self):
        """Moves the ops that can be moved, refuses those that must not stay, and logs the rest."""
        writers, left = [], []
        for name in self._nodes.ordered(self._after):
            variables = self._written(self._nodes[name])
            if not variables:
                continue
            # Without anything of a batch it can run in the chief's step, once per global batch.
            if name not in self._fed:
                writers.append(name)
            elif variables & self._trained:
                self._refuse(name, "takes something of a batch, which the chief does not have")
            else:
                left.append(name)
        if left:
            tf.logging.warning(
                "semisync: %s wait for the train op and take something of the batch: each worker "
                "runs them with every batch, before the global batch is applied",
                some_of(left, 3),
            )
        if writers:
            copies = self._copied(writers)
            self._sibling.applied._add_control_inputs([copies[name] for name in writers])
            self._leave_idle(writers)

    def _written(self, node):
        """The names of the shared variables that a node writes, a set."""
        if not self._traits.writes(node):
            return set()
        name = self._traits.written(node.name)
        names = [name] if name else self._nodes.makers(node)  # those that a function may write
        names = self._shared.intersection(names)
        return {name for name in names if not initialises(self._nodes, node, name)}

    def _refuse(self, name, why):
        raise UsageError(
            "{} waits for the train op and writes {}, and it {}: the chief applies global batches, "
            "and what comes behind them is the chief's; leave it out, or run it in a run of its "
            "own".format(name, " and ".join(sorted(self._written(self._nodes[name]))), why)
        )

    def _copied(self, writers):
        """{name: its copy in the chief's step}, of the writers and all that they need."""
        devices: Dict[str, str] = {}
        for name in writers:
            self._check(name)
            variable = self._graph.get_operation_by_name(min(self._written(self._nodes[name])))
            for needed in self._needs(name):
                devices.setdefault(needed, variable.device)
        copies: Dict[str, Any] = {}
        # Makers first: a copy takes the copies of its inputs.
        for name in in_order(writers, lambda n: [m for m in self._before(n) if m in devices]):
            copies[name] = self._copy(self._graph.get_operation_by_name(name), copies)
            copies[name]._set_device(devices[name])
        return copies

    def _copy(self, op, copies):
        inputs = [
            copies[tensor.op.name].outputs[tensor.value_index]
            if tensor.op.name in copies
            else tensor
            for tensor in op.inputs
        ]
        copy = self._graph.create_op(
            op.type,
            inputs,
            [tensor.dtype for tensor in op.outputs],
            input_types=[tensor.dtype for tensor in op.inputs],
            name="{}/{}{}".format(self._sibling.name, _SCOPE, op.name),
            attrs=dict(op.node_def.attr),
        )
        before = [copies[other.name] for other in op.control_inputs if other.name in copies]
        # The copies see the applied step, as their originals saw the train op's.
        copy._add_control_inputs([*before, self._sibling.trained])
        return copy

    def _needs(self, name):
        """The names of the ops to copy for a writer, itself included, a set."""
        return self._nodes.reachable([name], lambda node: self._before(node.name))

    def _before(self, name):
        """The ops to copy before a copy: not variables, nor values that no variable changes."""
        node = self._nodes[name]
        makers = [n for n in self._nodes.makers(node) if self._is_moved(self._nodes[n])]
        waits = self._after - self._fed - self._train_ops
        return makers + [n for n in self._nodes.control_inputs(node) if n in waits]

    def _is_moved(self, node):
        return node.op not in VARIABLES and (bool(node.input) or node.name in self._after)

    def _check(self, name):
        """Raises UsageError if a writer cannot be copied."""
        needs = self._needs(name)
        others = self._train_ops - {self._sibling.train_op.name}
        if others & self._nodes.ancestors([name]):
            self._refuse(name, "waits for the train ops of several optimizers")
        for node in [self._nodes[needed] for needed in self._nodes.ordered(needs)]:
            if node.op in ENTER:
                self._refuse(name, "is made in a loop, by " + node.name)
            if self._traits.bodies(node) and self._traits.writes(node):
                self._refuse(name, "is made in a function, that of " + node.name)
            if self._is_early(node):
                self._refuse(
                    name,
                    "takes {}, which does not wait for it and may be computed before".format(
                        node.name
                    ),
                )
        # `_make_idle` writes into a TemporaryVariable, whose shape must be known.
        for tensor in self._graph.get_operation_by_name(name).inputs[:1]:
            if tensor.dtype._is_ref_dtype and not tensor.shape.is_fully_defined():
                self._refuse(name, "writes a variable of no known shape")

    def _is_early(self, node):
        """Whether a node takes a value that the step changes, possibly from before the step.

        A reference variable is read outside of all control dependencies, but its value is that at
        the time of use.
        """
        makers = self._nodes.makers(node)
        changed = self._trained | self._counted
        if node.name in self._after or not changed & self._nodes.reachable(makers, self._made_of):
            return False
        return node.op != "Identity" or self._nodes[makers[0]].op not in VARIABLES

    def _made_of(self, node):
        return self._nodes.makers(node)

    def _leave_idle(self, writers):
        """Has the ops write nothing that lasts, and those that wait for them wait for the train op.

        The plain job is recorded as it was, see `semisync.wrapped.plain_step`.
        """
        instead: Dict[Any, Any] = {}
        with tf.control_dependencies(None):
            with tf.control_dependencies([self._sibling.train_op]):
                for op in map(self._graph.get_operation_by_name, writers):
                    instead[op] = tf.no_op(name="{}/{}".format(self._sibling.name, op.name))
            for op in self._graph.get_operations():
                controls = op.control_inputs
                if op not in instead and any(other in instead for other in controls):
                    op._remove_all_control_inputs()
                    op._add_control_inputs([instead.get(other, other) for other in controls])
            # False for every ticket; a constant is avoided, since TensorFlow would fold it.
            never = tf.less(self._sibling.state.ticket, tf.int64.min + 1)
            inputs = [_make_idle(op, never) for op in instead]
        plain_step.note([], inputs, {other: [op] for op, other in instead.items()})


def _make_idle(op, never):
    """Has an op that writes a variable write into a copy for the run, or never run.

    A reference variable's value may be fetched by the name of such an op, a resource's not.

    Returns:
        (The op's new input, the replaced input), tensors.
    """
    variable, last = op.inputs[0], len(op.inputs) - 1
    with tf.device(variable.device):
        if variable.dtype._is_ref_dtype:
            empty = raw_ops.TemporaryVariable(
                shape=variable.shape, dtype=variable.dtype.base_dtype, var_name=op.name
            )
            number, tensor = 0, raw_ops.Assign(ref=empty, value=variable)
        else:
            nothing = tf.placeholder_with_default(tf.zeros([], op.inputs[last].dtype), None)
            number, tensor = last, raw_ops.Switch(data=nothing, pred=never)[1]
    before = op.inputs[number]
    op._update_input(number, tensor)
    return tensor, before
