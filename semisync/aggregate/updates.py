"""Any other update that a batch makes of a variable shares the fate of its batch.

Counters, statistics of features, shadows of an ExponentialMovingAverage, scores of a vocabulary:
each worker sends the value that its batch would have assigned or added, and the chief does that
once per global step, with a combination of the values of the batches that count:

    sum     the sum of their values, each times its weight
    mean    that divided by the sum of the weights
    last    the value of the batch that arrived last

A global batch in which no batch counts changes nothing. An update that adds to some rows is sent as
the whole variable, with zeros elsewhere.
"""

from typing import NamedTuple

from graph_rewrite.graph.meta_graph import variables
from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.ops import ADD, ASSIGN, SUBTRACT
from graph_rewrite.patterns.language import match
from graph_rewrite.patterns.moving_average import ZERO_DEBIASED
from graph_rewrite.patterns.variables import initialises
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.common.tensor_names import split

HOW = ("sum", "mean", "last")
SIGN = {**dict.fromkeys(ADD, 1), **dict.fromkeys(SUBTRACT, -1)}
ADD_ROWS = {"ScatterAdd": 1, "ResourceScatterAdd": 1, "ScatterSub": -1, "ResourceScatterSub": -1}


class Shared(NamedTuple):
    """An op that updates a variable, both by name, and one of HOW."""

    op: str
    variable: str
    how: str


def find(graph, rules, taken=()):
    """The updates that share the fate of their batch, a list of `Shared` in the graph's order.

    Args:
        graph: a tf.Graph or a MetaGraphDef.
        rules: list of (compiled regex, how): the first that is found in a variable's name counts.
        taken: names of ops whose work is shared already.

    Raises:
        UsageError: a rule finds no update, or none that is left to it.
    """
    shared, used = [], set()
    known = list(updates(graph, Nodes.of(graph))) if rules else []
    for op, variable in known:
        rule = next((r for r in rules if r[0].search(variable)), None)
        if rule is not None and op not in taken:
            used.add(rule)
            shared.append(Shared(op, variable, rule[1]))
    for regex, _ in [rule for rule in rules if rule not in used]:
        if any(map(regex.search, _debiased(Nodes.of(graph)))):
            raise UsageError(
                "{!r} matches an average that is corrected for its start at zero, which cannot be "
                "shared: make it with zero_debias=False, or leave this rule out".format(
                    regex.pattern
                )
            )
        if any(regex.search(variable) for _, variable in known):
            raise UsageError(
                "what {!r} matches shares the fate of its batch already, by a rule before it or as "
                "a BatchNorm's: leave this rule out".format(regex.pattern)
            )
        raise UsageError(
            "no update of a variable that is not trained matches {!r}: build it before minimize, "
            "and check the name".format(regex.pattern)
        )
    return shared


def updates(graph, nodes):
    """(op, variable), names, of every assign-like op on a variable that no optimizer trains.

    Args:
        graph: a tf.Graph or a MetaGraphDef.
        nodes: its `Nodes`.
    """
    trained = _variables(graph, tf.GraphKeys.TRAINABLE_VARIABLES)
    variables = _variables(graph, tf.GraphKeys.GLOBAL_VARIABLES) - trained - _debiased(nodes)
    for node in nodes.of_type({*SIGN, *ADD_ROWS, *ASSIGN}.__contains__):
        name = split(node.input[0])[0]
        if name in variables and not initialises(nodes, node, name):
            yield node.name, name


def _debiased(nodes):
    """The names of the variables of averages that are corrected for their start at zero, a set.

    The correction divides by its batch's own count, which is 0 where the chief counts.
    """
    ops = nodes.of_type({*SIGN, *ASSIGN}.__contains__)
    found = filter(None, (match(ZERO_DEBIASED, nodes, node.name) for node in ops))
    return {split(each[name])[0] for each in found for name in ("variable", "biased", "step")}


def _variables(graph, key):
    """The names of the variables in a collection, a set."""
    if hasattr(graph, "get_collection"):
        return {variable.op.name for variable in graph.get_collection(key)}
    return set(variables(graph, key))


def aggregate(shared, add):
    """Has updates of the default graph share the fate of their batch.

    Args:
        shared: list of `Shared`.
        add: `GlobalBatchOptimizer.aggregate`.

    Returns:
        The names of the ops whose work is now done once per global step, a list.

    Raises:
        UsageError: one cannot be shared.
    """
    graph = tf.get_default_graph()
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    for op, name, how in shared:
        _add(graph.get_operation_by_name(op), variables[name], how, add)
    return [update.op for update in shared]


def _add(op, variable, how, add):
    value = _all_rows(op, variable) if op.type in ADD_ROWS else op.inputs[1]
    sign = SIGN.get(op.type) or ADD_ROWS.get(op.type)
    known = value.shape.is_fully_defined() or variable.shape.is_fully_defined()
    if not known or not value.shape.is_compatible_with(variable.shape):
        raise UsageError(
            "the update {!r} of {!r} has the shape {} and the variable {}: one must be known, and "
            "the other the same, to share the fate of a batch".format(
                op.name, variable.op.name, value.shape, variable.shape
            )
        )
    if not value.shape.is_fully_defined():
        value = tf.ensure_shape(value, variable.shape)

    def update(weights, stacked):
        with tf.device(variable.device):
            together, counted = _together(how, weights, stacked[0])
            if sign:
                return tf.assign_add(variable, sign * together).op
            kept = tf.cond(counted, lambda: together, variable.read_value)
            return tf.assign(variable, kept).op

    add([value], variable.device, update)


def _all_rows(op, variable):
    """The value that an op adds to a variable, in the variable's shape, zeros in other rows."""
    rows, values = op.inputs[1:]
    row = variable.shape.as_list()[1:]
    values += tf.zeros(tf.concat([tf.shape(rows), row], 0), values.dtype)  # may be one for all
    sums = tf.math.unsorted_segment_sum(values, rows, variable.shape.as_list()[0])
    return tf.reshape(sums, variable.shape)


def _together(how, weights, values):
    """The combination of the values [k, ...], zeros where k is 0; and whether k is more than 0."""
    counted = tf.greater(tf.size(weights), 0)
    if how == "last":
        first = tf.zeros(tf.concat([[1], tf.shape(values)[1:]], 0), values.dtype)
        return tf.concat([first, values], 0)[-1], counted
    shape = tf.concat([tf.shape(weights), tf.ones([tf.rank(values) - 1], tf.int32)], 0)
    weights = tf.reshape(weights, shape)
    # float64 holds integers up to 2**53 exactly, such as counters.
    total = tf.reduce_sum(tf.cast(values, tf.float64) * tf.cast(weights, tf.float64), 0)
    if how == "mean":
        total = tf.math.divide_no_nan(total, tf.cast(tf.reduce_sum(weights), tf.float64))
    return _as(total, values.dtype), counted


def _as(total, dtype):
    """The total in the dtype of the variable; rounded for integers."""
    return tf.cast(tf.round(total) if dtype.is_integer else total, dtype)
