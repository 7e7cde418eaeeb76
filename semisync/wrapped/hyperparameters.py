"""The hyperparameters of the wrapped optimizer: the chief's own, or sent with each batch.

The chief applies a global batch in a run of its own, which no job feeds. The tensors of the
job's graph that the optimizer takes, apart from gradients, are of two kinds:

    sent with each batch    if they depend on the run, that is on a placeholder, a random number, a
                            Python function or a local variable; and scalar constants, which a job
                            may feed by name, as a hook with a schedule of learning rates does
    the chief's own         if variables alone determine them, as a schedule over the global step

The chief uses the mean over the batches that count (equal values give exactly that value), and
where none counts the value of the step before. Floating-point numbers only: anything else that
depends on the run is refused.
"""

import collections
import numbers
from typing import Any, Dict, List, NamedTuple, Tuple

from graph_rewrite.graph.op_traits import LASTING
from graph_rewrite.graph.ops import CALLS, PLACEHOLDERS, VARIABLES
from semisync.common.compat import constant, tf
from semisync.common.errors import UsageError
from semisync.common.walks import reachable
from semisync.transport.payload import StackedTensors
from semisync.transport.staging import Staging

# Stateful, and yet the same in every run; of calls the bodies are opaque.
_LASTING = LASTING.union(CALLS)


class Taken(NamedTuple):
    """A tensor of the job that the chief's ops take.

    Attributes:
        tensor: the tensor.
        uses: pairs (op, number of its input).
    """

    tensor: Any
    uses: List[Tuple[Any, int]]


class Hyperparameters:
    """The hyperparameters of the ops by which the chief applies a global batch.

    Args:
        applied: the op that applies it.
        before: the names of all ops that were there before it was built, a set.
        gradients: the tensors that it applies.

    Attributes:
        per_batch: list of `Taken`, which go with each batch.
        unfed: names of the tensors, a set, that the chief's ops depend on and that do not.

    Raises:
        UsageError: one depends on the run, and is not a floating-point tensor of known shape.
    """

    def __init__(self, applied, before, gradients):
        known = {tensor.name for tensor in gradients}
        local = {variable.op for variable in tf.local_variables()}
        taken, self.unfed = _taken(applied, before)
        self.per_batch: List[Taken] = []
        for entry in taken:
            if entry.tensor.name in known:
                continue
            above = _above(entry.tensor.op)
            if _goes_with_the_batch(entry.tensor, above, local):
                self.per_batch.append(entry)
            else:
                self.unfed |= {tensor.name for op in above for tensor in op.outputs}

    def tensors(self):
        """The tensors that go with each batch, of static shapes, a list."""
        return [of_known_shape(entry.tensor) for entry in self.per_batch]

    def replace(self, tensors):
        """Has the chief's ops take `tensors` instead of `tensors()`, in the same order."""
        for entry, tensor in zip(self.per_batch, tensors):
            for op, number in entry.uses:
                op._update_input(number, tensor)


class AggregatedHyperparameters(NamedTuple):
    """The hyperparameters that go with each batch, as the chief uses them.

    Attributes:
        areas: list of the `Staging` that holds them; empty when there are none.
        begin: the op with which a chief begins.
        keep: the op that remembers them, for a step in which no batch counts.
        means: list of (tensor that the chief uses, the batch's own).
    """

    areas: List[Staging]
    begin: Any
    keep: Any
    means: List[Tuple[Any, Any]]


def aggregate(hyperparameters, name, device, aggregation):
    """Has the chief use the mean of the batches' values; returns `AggregatedHyperparameters`.

    Args:
        hyperparameters: the `Hyperparameters` of the chief's step.
        name: shared by all processes of the job.
        device: of the global step.
        aggregation: the `Aggregation`.
    """
    areas, begin, keep, means = [], [], [], []
    tensors = hyperparameters.tensors()
    if tensors:
        item = StackedTensors(tensors, device, None)
        areas = [Staging(name + "/hyperparameters", device, [item])]
        _, columns = aggregation.combine(areas[0])[item]
        lasts = [_last(name, number, column) for number, column in enumerate(columns)]
        means = list(map(_mean, columns, lasts))
        hyperparameters.replace(means)
        begin = [last.initializer for last in lasts]
        # Each mean has read the value of the step before by then.
        keep = [last.assign(mean, read_value=False) for last, mean in zip(lasts, means)]
    return AggregatedHyperparameters(
        areas, tf.group(*begin), tf.group(*keep), list(zip(means, tensors))
    )


def _last(name, number, column):
    """The variable that holds the value of the step before."""
    # As those of the job state: the same name in every process, and in no saver.
    with tf.name_scope(None):
        return tf.Variable(
            tf.zeros(column.shape[1:], column.dtype),
            trainable=False,
            use_resource=True,
            name="{}/hyperparameter_{}".format(name, number),
            collections=[],
        )


def _mean(values, last):
    """The mean of the rows of a tensor [k, ...]; their exact value if equal, `last` for k = 0."""
    first = tf.concat([values, tf.expand_dims(last.read_value(), 0)], 0)[0]
    count = tf.cast(tf.maximum(tf.shape(values)[0], 1), values.dtype)
    return first + tf.reduce_sum(values - first, 0) / count


def _taken(applied, before):
    """The `Taken` of an op built after `before`, and the names of the tensors between, a set."""
    uses: Dict[str, Any] = collections.OrderedDict()
    inside, waiting, between = {applied}, [applied], set()
    while waiting:
        op = waiting.pop()
        above = list(op.control_inputs)
        for number, tensor in enumerate(op.inputs):
            if tensor.op.name in before:
                uses.setdefault(tensor.name, Taken(tensor, [])).uses.append((op, number))
            else:
                between.add(tensor.name)
                above.append(tensor.op)
        new = [op for op in above if op.name not in before and op not in inside]
        inside.update(new)
        waiting += new
    return list(uses.values()), between


def _above(op):
    """All ops that an op's value depends on, itself included, a set."""
    return set(reachable([op], lambda one: [tensor.op for tensor in one.inputs]))


def _goes_with_the_batch(tensor, above, local):
    per_run = sorted(op.name for op in above if op in local or _depends_on_the_run(op))
    floating = tensor.dtype.base_dtype.is_floating
    if not per_run:
        constant = not any(op.type in VARIABLES for op in above)
        return constant and floating and tensor.shape.rank == 0
    if floating and (tensor.shape.rank is None or tensor.shape.is_fully_defined()):
        return True
    if tensor.dtype == tf.resource:
        raise UsageError(
            "the optimizer takes {}, a variable that every process has for itself: pass "
            "tf.identity of it, which goes with each batch".format(tensor.op.name)
        )
    raise UsageError(
        "the optimizer takes {} of type {} and shape {}, which depends on {} in every run: what "
        "goes with a batch is a floating-point tensor of known shape; make it one, or a "
        "variable".format(tensor.name, tensor.dtype.base_dtype.name, tensor.shape, per_run[0])
    )


def _depends_on_the_run(op):
    if op.outputs and all(tensor.dtype == tf.resource for tensor in op.outputs):
        return False  # a handle, such as a hash table's
    stateful = op.op_def is not None and op.op_def.is_stateful
    return op.type in PLACEHOLDERS or (stateful and op.type not in _LASTING)


def of_known_shape(tensor):
    """`tensor`, as a scalar if its rank is unknown: optimizers take only scalars."""
    return tf.ensure_shape(tensor, []) if tensor.shape.rank is None else tensor


def own_numbers(optimizer):
    """{name: value} of the numbers that an optimizer, and one that it wraps, was constructed
    with."""
    named: Dict[str, float] = {}
    for name, value in sorted(vars(optimizer).items()):
        if isinstance(value, tf.Tensor):
            known = constant(value)
            value = known.item() if known is not None and known.ndim == 0 else None
        if isinstance(value, tf.train.Optimizer):
            inner = own_numbers(value).items()
            named.update(("{}.{}".format(name.strip("_"), key), number) for key, number in inner)
        # bool is Integral, too: flags such as `_use_locking` are no hyperparameters.
        elif isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
            named[name.strip("_")] = float(value)
    return named
