"""The global step of a training graph: which variable it is, and who counts it.

1. It is the variable that the caller names, or that the graph collects as such, or that is called
   global_step.
2. Without one it is the only whole number that the chief's part counts, by adding 1 to it.
3. Where it counts none, a new one is made.

What the chief's part does not count already, the chief counts besides, after its last op.
"""

import collections
from typing import Dict, List

from graph_rewrite.edit import editor
from graph_rewrite.edit.excerpt import variables
from graph_rewrite.graph.constants import number
from graph_rewrite.graph.index import split
from graph_rewrite.graph.passthrough import VARIABLES
from graph_rewrite.patterns.variables import ADD
from semisync.common.compat import tf
from semisync.common.errors import BadInput, UsageError

_ALL, _COLLECTION = tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP
_NAME = "global_step"
_TYPES = (tf.int32.as_datatype_enum, tf.int64.as_datatype_enum)

NAMED, COUNTED, MADE = "named", "counted", "made"

# `variable`: it, or its tensor. `origin`: NAMED by the graph or by the caller, told by being
# COUNTED, or MADE. `counts`: names of the ops by which training counts it; without any the chief
# has to.
GlobalStep = collections.namedtuple("GlobalStep", "variable origin counts")


def counters(meta, nodes, kinds):
    """{variable: [ops that add 1 to it]}, names, of the global variables of one whole number."""
    known = variables(meta, _ALL)
    found: Dict[str, List[str]] = collections.OrderedDict()
    for node in nodes.of_type(ADD.__contains__):
        name = kinds.written(node.name)
        if name in known and _is_whole_number(nodes[name]) and number(nodes, node.input[1]) == 1:
            found.setdefault(name, []).append(node.name)
    return found


def candidates(meta, name, counted):
    """The names of the variables that may be the global step, a list; see `global_step`."""
    return [name or _NAME] + list(counted) + collected(meta)


def collected(meta):
    """The names of the variables that a MetaGraphDef collects as its global step, a list."""
    if _COLLECTION not in meta.collection_def:  # asking for it would add it
        return []
    names = map(split, meta.collection_def[_COLLECTION].node_list.value)  # of an old TensorFlow
    return [name for name, _ in names] + list(variables(meta, _COLLECTION))


def check_named(name, meta, nodes, counted):
    """Raises UsageError where a name is no global variable of one whole number.

    Args:
      counted: of `counters`.
    """
    if name in variables(meta, _ALL) and name in nodes and _is_whole_number(nodes[name]):
        return
    raise UsageError(
        "the global step must be a variable of one whole number, and {!r} is none: the graph "
        "counts {}".format(name, ", ".join(counted) or "with no variable")
    )


def global_step(graph, name, counted, part, kinds):
    """The `GlobalStep` of an excerpt; a new one is not made yet, and its variable is None.

    Args:
      graph: the tf.Graph.
      name: that the caller gives, or None.
      counted: of `counters`.
      part: the `ChiefPart`.
      kinds: the MetaGraph's `OpKinds`.
    """
    variable, origin = _named(graph, name), NAMED
    if variable is None:
        by_chief = [each for each, ops in counted.items() if part.needs.intersection(ops)]
        if not by_chief:
            return GlobalStep(None, MADE, [])
        if len(by_chief) > 1:
            raise BadInput(
                "the graph has no global step, and training counts {}: name one of them with "
                "--global-step".format(" and ".join(by_chief))
            )
        variable, origin = _named(graph, by_chief[0]), COUNTED
    counts = [op for op in part.needs if kinds.written(op) == variable.op.name]
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
    """Whether a MetaGraphDef says how its checkpoints are read."""
    return bool(_restoring(meta))


def initialise(meta, nodes, initializer):
    """Has a new global step of a MetaGraphDef initialised, by all that gives variables a value.

    Its savers do not know it: so they set it back. They are collected, for sessions to use them
    rather than one of their own, which would look for it in older checkpoints.
    """
    ops = _restoring(meta)
    if tf.GraphKeys.INIT_OP in meta.collection_def:
        ops += meta.collection_def[tf.GraphKeys.INIT_OP].node_list.value
    for name in ops:
        nodes[split(name)[0]].input.append("^" + initializer)
    if meta.HasField("saver_def") and tf.GraphKeys.SAVERS not in meta.collection_def:
        saver = meta.saver_def.SerializeToString()
        editor.add_to_collection(meta, tf.GraphKeys.SAVERS, [saver])


def _restoring(meta):
    """The names of the ops by which savers restore, a list."""
    savers = [meta.saver_def] if meta.HasField("saver_def") else []
    if tf.GraphKeys.SAVERS in meta.collection_def:
        collected = meta.collection_def[tf.GraphKeys.SAVERS].bytes_list.value
        savers += map(tf.train.SaverDef.FromString, collected)
    return list(collections.OrderedDict.fromkeys(saver.restore_op_name for saver in savers))


def collect(meta, step):
    """Has a session's hooks find a `GlobalStep`; by its name they do not find a resource."""
    if step.origin == MADE:
        editor.add_to_collection(meta, _ALL, [step.variable.to_proto().SerializeToString()])
    known = variables(meta, _ALL).get(step.variable.op.name)
    if known is not None and step.variable.op.name not in collected(meta):
        meta.collection_def.pop(_COLLECTION, None)
        editor.add_to_collection(meta, _COLLECTION, [known.SerializeToString()])


def _named(graph, name):
    """The variable of that name, else the one that is collected or called global_step, or None."""
    found = None
    if name is None and graph.get_collection(_COLLECTION):
        found = tf.train.get_global_step(graph)  # perhaps its tensor alone
        name = found.op.name
    named = [each for each in graph.get_collection(_ALL) if each.op.name == (name or _NAME)]
    return named[0] if named else found


def _is_whole_number(node):
    shape = node.attr["shape"].shape
    scalar = not shape.unknown_rank and not shape.dim
    return node.op in VARIABLES and node.attr["dtype"].type in _TYPES and scalar
