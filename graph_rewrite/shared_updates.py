"""Any other update that a batch makes of a variable shares the fate of its batch.

Counters, statistics of features, shadows of an ExponentialMovingAverage, scores of a vocabulary:
each worker sends what its batch would have assigned or added, and the chief does that once a global
step, with what the batches that count bring together:

    sum     the sum of their values, each times its weight
    mean    that divided by the sum of the weights
    last    the value of the batch that arrived last

A global batch of which no batch counts changes nothing. What a batch adds to some rows is sent as
the whole variable, zeros elsewhere.
"""

from semisync.compat import tf
from semisync.errors import UsageError

HOW = ("sum", "mean", "last")
ADD = {"AssignAdd": 1, "AssignAddVariableOp": 1, "AssignSub": -1, "AssignSubVariableOp": -1}
ADD_ROWS = {"ScatterAdd": 1, "ResourceScatterAdd": 1, "ScatterSub": -1, "ResourceScatterSub": -1}
SET = ("Assign", "AssignVariableOp")


def share(rules, carry):
    """Has the updates of the variables that `rules` name share the fate of their batch.

    Args:
      rules: list of (compiled regex, how): the first that is found in a variable's name counts.
      carry: `GlobalBatchOptimizer.carry`.

    Returns: the names of the ops whose work is now done once a global step, a list.

    Raises:
      UsageError: a rule finds no update in the default graph, or one that cannot be shared.
    """
    found, used = [], set()
    for op, variable in _updates(tf.get_default_graph()):
        rule = next((r for r in rules if r[0].search(variable.op.name)), None)
        if rule is not None:
            used.add(rule)
            found.append(op.name)
            _share_one(op, variable, rule[1], carry)
    for rule in rules:
        if rule not in used:
            raise UsageError(
                "no update of a variable that is not trained matches {!r}: build it before "
                "minimize, and check the name".format(rule[0].pattern)
            )
    return found


def _updates(graph):
    """(op, variable) of every assign-like op on a variable that no optimizer trains."""
    trained = {variable.op.name for variable in tf.trainable_variables()}
    variables = {v.op.name: v for v in tf.global_variables() if v.op.name not in trained}
    initializers = {variable.initializer for variable in variables.values()}
    for op in graph.get_operations():
        kind = op.type
        if (kind in ADD or kind in ADD_ROWS or kind in SET) and op not in initializers:
            variable = variables.get(op.inputs[0].op.name)
            if variable is not None and not op.inputs[1].op.type.startswith("Restore"):
                yield op, variable


def _share_one(op, variable, how, carry):
    value = _all_rows(op, variable) if op.type in ADD_ROWS else op.inputs[1]
    sign = ADD.get(op.type) or ADD_ROWS.get(op.type)
    if not value.shape.is_fully_defined():
        raise UsageError(
            "the update {!r} of {!r} has no static shape, and cannot share the fate of its "
            "batch".format(op.name, variable.op.name)
        )

    def update(weights, stacked):
        with tf.device(variable.device):
            together, counted = _together(how, weights, stacked[0])
            if sign:
                return tf.assign_add(variable, sign * together).op
            kept = tf.cond(counted, lambda: together, variable.read_value)
            return tf.assign(variable, kept).op

    carry([value], variable.device, update)


def _all_rows(op, variable):
    """What an op adds to each row of a variable, of its shape."""
    rows, values = op.inputs[1:]
    row = variable.shape.as_list()[1:]
    values += tf.zeros(tf.concat([tf.shape(rows), row], 0), values.dtype)  # may be one for all
    found = tf.math.unsorted_segment_sum(values, rows, variable.shape.as_list()[0])
    return tf.reshape(found, variable.shape)


def _together(how, weights, values):
    """What the values [k, ...] come to, zeros where k is 0; and whether k is more than 0."""
    counted = tf.greater(tf.size(weights), 0)
    if how == "last":
        first = tf.zeros(tf.concat([[1], tf.shape(values)[1:]], 0), values.dtype)
        return tf.concat([first, values], 0)[-1], counted
    shape = tf.concat([tf.shape(weights), tf.ones([tf.rank(values) - 1], tf.int32)], 0)
    weights = tf.reshape(weights, shape)
    total = tf.reduce_sum(tf.cast(values, tf.float64) * tf.cast(weights, tf.float64), 0)
    if how == "mean":
        total = tf.math.divide_no_nan(total, tf.cast(tf.reduce_sum(weights), tf.float64))
    return _as(total, values.dtype), counted


def _as(total, dtype):
    """Whole numbers are rounded."""
    return tf.cast(tf.round(total) if dtype.is_integer else total, dtype)
