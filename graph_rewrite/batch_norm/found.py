"""The records that `find_batch_norms` and `find_updates` return."""

from typing import Any, List, NamedTuple, Optional, Tuple, Union


class Debias(NamedTuple):
    """How a moving average is corrected for its start at zero.

    Attributes:
        biased: the name of the variable with the plain average; the variable of the `Update` is
            set to biased / (1 - (1 - rate)^step).
        step: the name of the variable that counts the updates.
        ops: the names of the ops that update these two.
    """

    biased: str
    step: str
    ops: Tuple[str, str]


class Update(NamedTuple):
    """An op of a graph that changes a variable outside of any optimizer's Apply ops.

    Tensors are named as in a GraphDef, in functions as `graph_rewrite.graph.functions` says.

    Attributes:
        variable: the name of the variable's op.
        source: the tensor that the variable moves towards, or that is added or assigned. For a part
            of a partitioned variable that moves: the tensor that the whole one moves towards.
        rate: of a moving average, variable += rate x (source - variable): a float, or the name of a
            tensor where that varies; None of any other.
        op: the name of the op that assigns.
        in_branch: whether that op lies in a branch of a condition.
        dependents: the names of the nodes at the top level that take the op's output or wait for
            it; where it lies in a function, those of the call. A tuple.
        kind: "average", "add", "subtract", "assign" or "scatter" (some rows only).
        left_alone: why it may not be rewritten, or "".
        debias: the `Debias` of a moving average that is corrected for its start at zero, or None.

    Examples:
        >>> seen = tf.get_variable("seen", initializer=0.0, trainable=False)
        >>> moved = tf.assign_sub(seen, 0.1 * (seen - 5.0))
        >>> [update] = graph_rewrite.find_updates(tf.get_default_graph())
        >>> update.kind, round(update.rate, 4)
        ('average', 0.1)
    """

    variable: str
    source: str
    rate: Union[float, str, None]
    op: str
    in_branch: bool
    dependents: Tuple[str, ...]
    kind: str
    left_alone: str
    debias: Optional[Debias] = None

    @property
    def ops(self):
        """The names of all ops that update, a tuple."""
        return (self.op,) + (self.debias.ops if self.debias else ())

    @property
    def variables(self):
        """The names of all variables that are updated, a tuple."""
        return (self.variable,) + (self.debias[:2] if self.debias else ())


class BatchNorm(NamedTuple):
    """One batch normalisation: its inputs and results, its variables, and their updates.

    Tensors are named as in a GraphDef ("op", "op:1"), those inside a function as
    `graph_rewrite.graph.functions` says; variables by their op, a partitioned one by what its parts
    share.

    Attributes:
        name: the scope.
        kind: "fused" or "unfused".
        op: the name of the FusedBatchNorm, of two the one for training; else of the Rsqrt (or Sqrt,
            Pow).
        input: the tensor x at the top level, outside of any branch.
        gamma: a variable, or None.
        beta: a variable, or None.
        moving_mean: a variable, or None.
        moving_variance: a variable, or None.
        momentum: a float, or the name of a tensor where it varies, while training. None without an
            update, and where only its complement is a tensor: `updates` name that as their rate.
        epsilon: a float.
        axis: the channel axes, a tuple; (-1,) if the rank is not known.
        training: True; False; or the name of the predicate's tensor, which is true in training.
        mean: the batch's, as the updates take it, at the top level, outside of branches, wherever
            such a tensor exists; None where no batch statistic is computed.
        variance: the batch's, likewise.
        bessel: whether that variance is the corrected one, x n / (n - 1), as FusedBatchNorm gives
            it.
        updates: the `Update`s of the moving statistics, the mean's first; one per part.
        dependents: the names of the nodes at the top level that depend on the updates, nearest
            ones, a tuple.
        in_collection: whether all updates are in UPDATE_OPS; False for a GraphDef.
        finding: a sentence that the graph's author should read, or "".
        left_alone: why nothing of it may be rewritten, a sentence, or "".

    Examples:
        >>> x = tf.placeholder(tf.float32, [None, 8])
        >>> with tf.variable_scope("bn"):
        ...     names = ("moving_mean", "moving_variance")
        ...     moving = [tf.get_variable(name, [8], trainable=False) for name in names]
        ...     mean, variance = tf.nn.moments(x, [0])
        ...     y = tf.nn.batch_normalization(x, mean, variance, None, None, 1e-3)
        ...     for old, new in zip(moving, (mean, variance)):
        ...         update = tf.assign_sub(old, 0.1 * (old - new))
        >>> [found] = graph_rewrite.find_batch_norms(tf.get_default_graph())
        >>> round(found.momentum, 4), found.axis, found.shareable
        (0.9, (1,), True)
    """

    name: str
    kind: str
    op: str
    input: str
    gamma: Any
    beta: Any
    moving_mean: Any
    moving_variance: Any
    momentum: Any
    epsilon: Any
    axis: Tuple[int, ...]
    training: Any
    mean: Any
    variance: Any
    bessel: bool
    updates: List[Update]
    dependents: Tuple[str, ...]
    in_collection: bool
    finding: str
    left_alone: str

    @property
    def shareable(self):
        """Whether its moving statistics can share the fate of their batch."""
        return bool(self.updates) and not self.left_alone
