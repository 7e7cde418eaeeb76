"""The global step of a training graph: which variable it is, and who counts it.

1. It is the variable that the caller names, or the one in the graph's collection, or the one called
   global_step.
2. Without one it is the only whole number that the chief's part counts, by adding 1 to it.
3. Where it counts none, a new one is made.

If no op of the chief's part counts it, the chief does, after its last op.
"""

import collections
from typing import Any, Dict, List, NamedTuple

from graph_rewrite.graph.constants import number
from graph_rewrite.graph.meta_graph import add_to_collection, names, variables
from graph_rewrite.graph.ops import ADD, VARIABLES
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError
from semisync.common.tensor_names import split

_ALL, _COLLECTION = tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP
_NAME = "global_step"
_TYPES = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)

NAMED, COUNTED, MADE = "named", "counted", "made"


class GlobalStep(NamedTuple):
    """The global step of a training graph.

    Attributes:
        variable: the tf.Variable, or its tensor alone; None until a new one is made.
        origin: NAMED by the graph or by the caller, recognised because it is COUNTED, or MADE.
        counts: names of the ops by which training counts it, a list; if empty, the chief counts it.
    """

    variable: Any
    origin: str
    counts: List[str]


def counters(meta, nodes, traits):
    """{variable: [ops that add 1 to it]}, names, of the global integer scalar variables."""
    known = variables(meta)
    counted: Dict[str, List[str]] = collections.OrderedDict()
    for node in nodes.of_type(ADD.__contains__):
        name = traits.written(node.name)
        # A step that grows by more than 1, or a counter of examples, is no global step.
        if name in known and _is_whole_number(nodes[name]) and number(nodes, node.input[1]) == 1:
            counted.setdefault(name, []).append(node.name)
    return counted


def check_named(name, meta, nodes, counted):
    """Raises UsageError unless a name is a global variable of one integer.

    Args:
        counted: of `counters`.
    """
    if name in variables(meta) and name in nodes and _is_whole_number(nodes[name]):
        return
    raise UsageError(
        "the global step must be a variable of one whole number, which {!r} is not: the graph "
        "counts {}".format(name, ", ".join(counted) or "with no variable")
    )


def find(graph, name, counted, chief, traits):
    """The `GlobalStep` of a graph; a new one is not made yet, and its variable is None.

    Args:
        graph: the tf.Graph.
        name: that the caller gives, or None.
        counted: of `counters`.
        chief: the `ChiefPart`.
        traits: the MetaGraph's `OpTraits`.
    """
    variable, origin = _named(graph, name), NAMED
    if variable is None:
        by_chief = [key for key, ops in counted.items() if chief.needs.intersection(ops)]
        if not by_chief:
            return GlobalStep(None, MADE, [])
        if len(by_chief) > 1:
            raise BadInput(
                "the graph has no global step, and training counts {}: name one of them with "
                "--global-step".format(" and ".join(by_chief))
            )
        variable, origin = _named(graph, by_chief[0]), COUNTED
    counts = [op for op in chief.needs if traits.written(op) == variable.op.name]
    return GlobalStep(variable, origin, sorted(counts))


def make(device):
    """A new global step in the default graph, of an initial value that a saver can restore."""
    with tf.device(device):
        return tf.Variable(
            tf.zeros([], tf.int64),
            trainable=False,
            use_resource=True,
            name=_NAME,
            collections=[_ALL],
        )


def has_saver(meta):
    """Whether a MetaGraphDef has a saver."""
    return bool(_restoring(meta))


def initialise(meta, nodes, initializer):
    """Initialises a new global step of a MetaGraphDef wherever variables get their values.

    Its savers do not know the step, so they reset it. They are collected, so that sessions use them
    rather than a saver of their own, which would look for the step in older checkpoints.
    """
    for name in _restoring(meta) + names(meta, tf.GraphKeys.INIT_OP):
        nodes[split(name)[0]].input.append("^" + initializer)
    if meta.HasField("saver_def") and tf.GraphKeys.SAVERS not in meta.collection_def:
        saver = meta.saver_def.SerializeToString()
        add_to_collection(meta, tf.GraphKeys.SAVERS, [saver])


def _restoring(meta):
    savers = [meta.saver_def] if meta.HasField("saver_def") else []
    if tf.GraphKeys.SAVERS in meta.collection_def:
        collected = meta.collection_def[tf.GraphKeys.SAVERS].bytes_list.value
        savers += map(tf.train.SaverDef.FromString, collected)
    # `saver_def` may be one of the collected savers.
    return list(collections.OrderedDict.fromkeys(saver.restore_op_name for saver in savers))


def collect(meta, step):
    """Collects a `GlobalStep` for a session's hooks, which do not find a resource by its name."""
    if step.origin == MADE:
        add_to_collection(meta, _ALL, [step.variable.to_proto().SerializeToString()])
    name = step.variable.op.name
    # An old TensorFlow collects its tensor, newer ones a VariableDef.
    collected = [split(tensor)[0] for tensor in names(meta, _COLLECTION)]
    collected += variables(meta, _COLLECTION)
    known = variables(meta).get(name)
    if known is not None and name not in collected:
        # TensorFlow takes the step from a collection of one item alone (training_util.py).
        meta.collection_def.pop(_COLLECTION, None)
        add_to_collection(meta, _COLLECTION, [known.SerializeToString()])


def _named(graph, name):
    """The variable of that name, else the one that is collected or called global_step, or None."""
    step = None
    if name is None and graph.get_collection(_COLLECTION):
        step = tf.train.get_global_step(graph)  # perhaps its tensor alone
        name = step.op.name
    named = [v for v in graph.get_collection(_ALL) if v.op.name == (name or _NAME)]
    return named[0] if named else step


def _is_whole_number(node):
    shape = node.attr["shape"].shape
    scalar = not shape.unknown_rank and not shape.dim
    return node.op in VARIABLES and node.attr["dtype"].type in _TYPES and scalar
