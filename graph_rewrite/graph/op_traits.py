"""Traits of an op, from its definition: whether it writes, and whether it brings a batch.

    brings a batch   its value differs between runs, or between processes: placeholders, queues,
                     iterators, readers, random numbers, Python functions. So does every stateful
                     op that is not listed here.
    writes           it changes a variable, or another input that is passed by reference

A call of a function has every trait that any op of the function's body has.
"""

import re

from graph_rewrite.graph.ops import (
    CARRY,
    ENTER,
    PLACEHOLDERS,
    READ,
    SWITCH,
    TELLS,
    TRAINING_OP,
    VARIABLES,
)
from semisync.common.compat import op_def, tf
from semisync.common.errors import BadInput
from semisync.common.tensor_names import CONTROL, split
from semisync.common.walks import along, in_order

# Ops that may pass a variable's reference or handle on to the op that writes it.
_PASSING = SWITCH | ENTER | {"Identity", "RefIdentity"}
_WRITES_RESOURCE = re.compile(
    r"Resource(Apply|SparseApply|Scatter|StridedSliceAssign|CountUpTo)|Assign\w*VariableOp$"
)
# These take a reference, but only pass it on (RefSwitch, RefMerge, ...) or look at it.
_WRITES_NO_REFERENCE = re.compile("Ref[A-Z]|IsVariableInitialized$")
_READS = READ | {"ResourceGather", "ResourceGatherNd"}
# Stateful by their definition (CheckNumerics since TensorFlow 2), yet the same for every batch.
LASTING = VARIABLES | _READS | TELLS | CARRY | {"VarIsInitializedOp", "VariableShape"}


class OpTraits:
    """Looks up the definitions of a graph's ops.

    Args:
        nodes: the graph's `Nodes`.
        library: its FunctionDefLibrary.

    Attributes:
        carried: names of the ops that bring no batch, regardless of their type: the chief gets
            their values from the batches; a set to add to.
    """

    def __init__(self, nodes, library):
        self.carried = set()
        self._nodes = nodes
        self._functions = {function.signature.name: function for function in library.function}
        self._known = {}
        self._bringing = {}  # op -> whether it alone brings a batch
        self._writing = {}  # op -> whether it alone writes
        self._naming = {}  # op -> its attributes that may name functions
        self._inside = {}  # (name of a test, function) -> whether one of its nodes passes

    def definition(self, node):
        """The OpDef of a NodeDef.

        Raises:
            BadInput: TensorFlow has none.
        """
        if node.op not in self._known:
            function = self._functions.get(node.op)
            definition = function.signature if function else op_def(node.op)
            if definition is None:
                raise BadInput(
                    "TensorFlow {} does not know {}, the type of the op {}: rewrite with the job's "
                    "TensorFlow, by graph_rewrite.semi_synchronize where its libraries are "
                    "loaded".format(tf.__version__, node.op, node.name)
                )
            self._known[node.op] = definition
        return self._known[node.op]

    def output_types(self, node):
        """The types of a node's outputs, a list of DataType."""
        types = []
        for arg in self.definition(node).output_arg:
            if arg.type_list_attr:
                types += self._attr(node, arg.type_list_attr).list.type
            else:
                kind = arg.type or self._attr(node, arg.type_attr).type
                count = self._attr(node, arg.number_attr).i if arg.number_attr else 1
                types += [kind] * count
        return types

    def _attr(self, node, name):
        if name in node.attr:
            return node.attr[name]
        # An export with strip_default_attrs leaves out attributes that have their default value.
        return next(a.default_value for a in self.definition(node).attr if a.name == name)

    def position(self, node, *names):
        """The number of the first input that the definition calls by one of `names`, or None."""
        numbers = (n for n, arg in enumerate(self.definition(node).input_arg) if arg.name in names)
        return next(numbers, None)

    def brings_batch(self, node):
        """See the module."""
        if node.name in self.carried:
            return False
        called = self._called(node)
        if called:
            return any(self._any_inside(self.brings_batch, name) for name in called)
        if node.op not in self._bringing:
            self._bringing[node.op] = self._brings_itself(node)
        return self._bringing[node.op]

    def _brings_itself(self, node):
        if node.op in PLACEHOLDERS:
            return True
        stateful = self.definition(node).is_stateful
        return stateful and node.op not in LASTING and not _WRITES_RESOURCE.match(node.op)

    def writes(self, node):
        """See the module."""
        if node.op not in self._writing:
            self._writing[node.op] = self._writes_itself(node)
        if self._writing[node.op]:
            return True
        return any(self._any_inside(self.writes, name) for name in self._called(node))

    def _writes_itself(self, node):
        if any(arg.is_ref for arg in self.definition(node).input_arg):
            return not _WRITES_NO_REFERENCE.match(node.op)
        return bool(_WRITES_RESOURCE.match(node.op))

    def trains(self, node):
        """True for a training op, and for a call of a function with one."""
        if TRAINING_OP.match(node.op):
            return True
        return any(self._any_inside(self.trains, name) for name in self._called(node))

    def values_of(self, node, cut=()):
        """The names of the nodes that take a node's value, or read the variable that it writes.

        Args:
            cut: as for `flow`.
        """
        uses = self._nodes.uses(node.name)
        takers = [use.node.name for use in uses if (use.node.name, use.input) not in cut]
        waiting = self._nodes.waiting(node.name)
        if waiting and self.writes(node):
            reads = [name for name in waiting if self._nodes[name].op in _READS]
            # An op that writes to a resource has no output: its readers wait for it instead.
            takers += [name for name in reads if self._nodes[name].input[0] == node.input[0]]
        return takers

    def flow(self, starts, cut=()):
        """The names of all nodes whose values depend on one of `starts`, these too.

        Args:
            starts: names.
            cut: set of (node, number of its input) that do not count.
        """
        return self._nodes.reachable(starts, lambda node: self.values_of(node, cut))

    def written(self, name):
        """The name of the variable that an op writes, or None; both at the top level."""
        node = self._nodes[name]
        if not self.writes(node):
            return None
        last = self._way(node)[-1]
        return last.name if last.op in VARIABLES else None

    def is_conditional(self, node):
        """True when a node writes its variable inside a tf.cond or a loop."""
        return any(passed.op in SWITCH | ENTER for passed in self._way(node))

    def _way(self, node):
        """The nodes on the way from an op that writes to its variable, both included."""

        def before(name):
            tensor = self._first_state(self._nodes[name])
            return None if tensor is None else split(tensor)[0]

        return [self._nodes[name] for name in along(node.name, before)]

    def _first_state(self, node):
        """The variable's ref or handle that a node writes or passes on; None if it does neither."""
        takes = node.input and split(node.input[0])[1] != CONTROL
        return node.input[0] if takes and (node.op in _PASSING or self.writes(node)) else None

    def bodies(self, node):
        """The nodes of every function that a node calls, a list of lists."""
        return [self._functions[name].node_def for name in self._called(node)]

    def _called(self, node):
        if not self._functions:
            return []
        if node.op not in self._naming:
            definition = op_def(node.op)
            attributes = definition.attr if definition else ()
            kinds = "func", "list(func)"
            self._naming[node.op] = [attr.name for attr in attributes if attr.type in kinds]
        names = [node.op]
        for attribute in self._naming[node.op]:
            value = self._attr(node, attribute)
            names += [value.func.name] + [function.name for function in value.list.func]
        return [name for name in names if name in self._functions]

    def _any_inside(self, test, name):
        """Whether a node of a function passes a test, a method."""
        asked = test.__name__
        if (asked, name) not in self._inside:
            # Callees come first, so that no test recurses.
            for inner in in_order([name], self._called_inside):
                if (asked, inner) not in self._inside:
                    self._inside[asked, inner] = False  # where the function calls itself
                    nodes = self._functions[inner].node_def
                    self._inside[asked, inner] = any(map(test, nodes))
        return self._inside[asked, name]

    def _called_inside(self, name):
        return [called for node in self._functions[name].node_def for called in self._called(node)]
