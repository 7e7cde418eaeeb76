"""Hyperparameters of a training graph: those that a job feeds, or may feed.

    fed       a floating-point placeholder of no dimension that no gradient is made of: with a
              default or without, it reaches the training behind the gradients
    may be    the constant that a training op takes as its learning rate, which jobs feed by its
              name, as ResNet's schedule does

Both go with each batch, and the chief uses their mean (`semisync.wrapped.hyperparameters`). The
chief computes all other inputs of its part itself.
"""

from graph_rewrite.graph.nodes import Nodes
from graph_rewrite.graph.ops import PLACEHOLDERS, PLAIN_STEP, TRAINING_OP
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.common.tensor_names import split

_RATES = ("lr", "alpha")  # the learning rate in the definitions of training ops
_SCALES = ("Mul", "RealDiv", "Div", "Neg", "Identity", "Cast")


def find_fed(nodes, traits, trainable):
    """The names of the placeholders that are hyperparameters, a list in the graph's order.

    Args:
        nodes, traits: the graph's `Nodes` and `OpTraits`.
        trainable: names of the trainable variables.
    """
    sources = [node for node in nodes if traits.brings_batch(node)]
    # A placeholder of unknown shape may be a number, too.
    candidates = [node for node in sources if _is_number(node, known=False)]
    if len(candidates) == len(sources):  # then features are among them
        candidates = [node for node in sources if _is_number(node, known=True)]
    names = {node.name for node in candidates}
    if not names:
        return []
    batch = traits.flow([node.name for node in sources if node.name not in names])
    gradients = dict(_gradients(nodes, traits, set(trainable), batch))
    # What a gradient is made of is data, even a lone number such as a dropout's rate.
    made_of = nodes.reachable(
        [name for makers in gradients.values() for name in makers], nodes.makers
    )
    return [
        node.name
        for node in candidates
        if node.name not in made_of and not gradients.keys().isdisjoint(traits.flow([node.name]))
    ]


def _gradients(nodes, traits, trainable, batch):
    """(op that trains, names of the ops that make its gradient), all that depend on a batch.

    An op that only scales a gradient, by a value that depends on no batch, belongs to the training.
    """
    for node in nodes.of_type(TRAINING_OP.match):
        yield node.name, [split(node.input[traits.position(node, "grad", "delta")])[0]]
    for node in nodes.of_type(PLAIN_STEP.match):
        if traits.written(node.name) in trainable:
            value = split(node.input[traits.position(node, "updates", "value")])[0]

            def follow(above):
                scales = above.op in _SCALES
                return [name for name in nodes.makers(above) if name in batch] if scales else []

            reached = nodes.reachable([value], follow)
            yield node.name, [name for name in reached if nodes[name].op not in _SCALES]


def find_rates(nodes, traits):
    """The names of the constants that training ops take as their learning rate, a list."""
    rates = []
    for node in nodes.of_type(TRAINING_OP.match):
        number = traits.position(node, *_RATES)
        maker = None if number is None else nodes.maker(node.input[number])
        if maker is not None and maker.op == "Const" and maker.name not in rates:
            rates.append(maker.name)
    return rates


def fix(meta, values):
    """Puts constants in the places of hyperparameters of a MetaGraphDef, in place.

    Args:
        values: {name of an op: number}.

    Raises:
        UsageError: no such op, or no floating-point number.
    """
    nodes = Nodes.of(meta) if values else {}
    for name, value in values.items():
        node = nodes.get(name)
        if node is None or not (_is_number(node, known=False) or _is_constant(node)):
            raise UsageError(
                "--set {}={}: the graph has no floating-point placeholder or constant of no "
                "dimension of that name".format(name, value)
            )
        dtype = _dtype(node)
        del node.input[:]
        node.op = "Const"
        node.attr.clear()
        node.attr["dtype"].type = dtype.as_datatype_enum
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype, []))


def _dtype(node):
    return tf.as_dtype(node.attr["dtype"].type)


def _is_number(node, known):
    """Whether a node is a floating-point placeholder of no dimension, a `known` one or not."""
    if node.op not in PLACEHOLDERS or not _dtype(node).is_floating:
        return False
    shape = node.attr["shape"].shape
    return not shape.dim and not (known and shape.unknown_rank)


def _is_constant(node):
    number = node.op == "Const" and _dtype(node).is_floating
    return number and not node.attr["value"].tensor.tensor_shape.dim
