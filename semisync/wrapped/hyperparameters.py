"""The hyperparameters of the wrapped optimizer: the chief's own, or brought by each batch.

The chief applies a global batch in a run that nobody feeds. Of the tensors of the job's graph that
the optimizer takes, apart from gradients,

    goes with each batch    what depends on the run, that is on a placeholder, a random number, a
                            Python function or a local variable; and a scalar constant, which a job
                            may feed by its name, as a hook with a schedule of learning rates does
    is the chief's own      what variables alone decide, such as a schedule over the global step

The chief uses the mean over the batches that count, all of one value giving exactly that value, and
where none counts the value of the step before. Floating-point numbers only: anything else that
depends on the run is refused.
"""

import collections
import numbers
from typing import Any, Dict, List

from graph_rewrite.graph.op_traits import PLACEHOLDERS, TELLS
from graph_rewrite.graph.passthrough import READ, VARIABLES
from semisync.common.compat import constant, tf
from semisync.common.errors import UsageError

# Stateful, and yet no run's own: what reads variables, and calls, whose bodies are not looked into.
_LASTING = VARIABLES | READ | TELLS | {"If", "Case", "While", "StatefulPartitionedCall"}

# A tensor that the chief's ops take of the job's: `uses` are pairs (op, number of its input).
Taken = collections.namedtuple("Taken", "tensor uses")


class Hyperparameters:
    """Those of the ops by which the chief applies a global batch.

    Args:
      applied: the op that applies it.
      before: the names of all ops that were there before it was built, a set.
      gradients: what it applies, tensors.

    Attributes:
      carried: list of `Taken`, which go with each batch.
      unfed: names of the tensors, a set, that the chief's ops are made of and that do not.

    Raises:
      UsageError: one depends on the run, and is no floating-point tensor of known shape.
    """

    def __init__(self, applied, before, gradients):
        known = {tensor.name for tensor in gradients}
        local = {variable.op for variable in tf.local_variables()}
        taken, self.unfed = _taken(applied, before)
        self.carried: List[Taken] = []
        for each in taken:
            if each.tensor.name in known:
                continue
            above = _above(each.tensor.op)
            if _goes_with_the_batch(each.tensor, above, local):
                self.carried.append(each)
            else:
                self.unfed |= {tensor.name for op in above for tensor in op.outputs}

    def tensors(self):
        """Those that each batch carries, of static shapes, a list."""
        return [of_known_shape(each.tensor) for each in self.carried]

    def replace(self, tensors):
        """Has the chief's ops take `tensors` in the place of those of the same number."""
        for each, tensor in zip(self.carried, tensors):
            for op, number in each.uses:
                op._update_input(number, tensor)


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
        new = [each for each in above if each.name not in before and each not in inside]
        inside.update(new)
        waiting += new
    return list(uses.values()), between


def _above(op):
    """All ops that an op's value is made of, itself too, a set."""
    found, waiting = {op}, [op]
    while waiting:
        new = {tensor.op for tensor in waiting.pop().inputs} - found
        found |= new
        waiting += new
    return found


def _goes_with_the_batch(tensor, above, local):
    runs_own = sorted(op.name for op in above if op in local or _is_runs_own(op))
    floating = tensor.dtype.base_dtype.is_floating
    if not runs_own:
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
        "variable".format(tensor.name, tensor.dtype.base_dtype.name, tensor.shape, runs_own[0])
    )


def _is_runs_own(op):
    stateful = op.op_def is not None and op.op_def.is_stateful
    return op.type in PLACEHOLDERS or (stateful and op.type not in _LASTING)


def of_known_shape(tensor):
    """`tensor`, a scalar where its rank is not known: optimizers take nothing else."""
    return tf.ensure_shape(tensor, []) if tensor.shape.rank is None else tensor


def own_numbers(optimizer):
    """{name: value} of the numbers that an optimizer was made with, those it wraps included."""
    found: Dict[str, float] = {}
    for name, value in sorted(vars(optimizer).items()):
        if isinstance(value, tf.Tensor):
            known = constant(value)
            value = known.item() if known is not None and known.ndim == 0 else None
        if isinstance(value, tf.train.Optimizer):
            inner = own_numbers(value).items()
            found.update(("{}.{}".format(name.strip("_"), key), each) for key, each in inner)
        elif isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
            found[name.strip("_")] = float(value)
    return found
