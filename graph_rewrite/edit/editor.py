"""Editing a MetaGraphDef: only the requested changes are made, all else keeps its bytes and order.

An op of the chief's that people fetch (`ChiefPart.fetched`) is renamed to APPLIED + its name. Its
own name goes to an op that trains: a NoOp behind the worker's part, or, where an output is wanted,
an op with the same output: the variable's value read after it, or a copy of the op that computes
but does not write.
"""

from graph_rewrite.edit.function_bodies import can_do_without, run_without
from graph_rewrite.graph.functions import home, open_functions, top
from graph_rewrite.graph.ops import ARGUMENT, EXIT
from semisync.common.compat import op_def, tf
from semisync.common.errors import BadInput
from semisync.common.tensor_names import join, split

APPLIED = "semisync/applied/"  # before the names of the chief's ops whose own names now train
_SHAPES = "_output_shapes"  # the attribute in which an export records the shapes of outputs
OWN = "semisync/own/"  # before the names of the chief's copies of ops that workers run, too
# Attributes of TensorFlow 2.x that 1.15 rejects: a name for error messages, and a check of the
# shape that is assigned.
_NEW = (("VarHandleOp", "debug_name"), ("AssignVariableOp", "validate_shape"))


class Editor:
    """Edits one MetaGraphDef in place; `finish` completes it.

    Args:
        meta: the MetaGraphDef.
        nodes, traits: its `Nodes`, which see the edits, and `OpTraits`.
        chief: its `ChiefPart`.
    """

    def __init__(self, meta, nodes, traits, chief):
        self._meta, self._nodes, self._traits, self._chief = meta, nodes, traits, chief
        self._stand_ins = {}  # name -> the NodeDef that takes its place

    def put(self, tensors):
        """Puts tensors into inputs: {GradientInput: name of the tensor}."""
        for taken, tensor in tensors.items():
            # A session writes output 0 as "op:0", a GraphDef as "op".
            self._nodes[taken.node].input[taken.number] = join(*split(tensor))

    def bring(self, values):
        """Gives the chief's part other tensors for the values of ops: {op: tensor}.

        Workers may also run the ops between these and the chief's own: the chief gets a copy.
        """
        needs, ops = self._chief.needs, self._chief.ops

        def below(node):
            return [use.node.name for use in self._nodes.uses(node.name) if use.node.name in needs]

        changed = self._nodes.reachable(values, below).difference(values)
        copied = {name: OWN + name for name in changed - ops}
        for node in [node for node in self._nodes if node.name in changed]:
            if node.name in copied:
                copy = self._meta.graph_def.node.add()
                copy.CopyFrom(node)
                node, copy.name = copy, copied[copy.name]
            for number, tensor in enumerate(self._nodes.inputs(node)):
                name, output = split(tensor)
                if name in values:
                    node.input[number] = join(*split(values[name]))
                elif name in copied:
                    node.input[number] = join(copied[name], output)

    def rewire(self, edges):
        """Replaces the control inputs of ops: {name: names}."""
        for name, controls in edges.items():
            node = self._nodes[name]
            inputs = self._nodes.inputs(node) + ["^" + control for control in controls]
            del node.input[:]
            node.input.extend(inputs)

    def stand_in(self, name, after):
        """Puts an op that waits for the op `after` in the place of `name`."""
        node = self._nodes[name]
        variable = self._nodes.get(self._traits.written(name))
        stand_in = tf.NodeDef(name=name, op="NoOp", device=node.device)
        if variable is not None and variable.op != "VarHandleOp":
            # The op's output was the variable itself.
            stand_in.op = "Identity"
            stand_in.attr["T"].type = variable.attr["dtype"].type
            stand_in.input.append(node.input[0])
        elif name in self._chief.tensors:
            # A copy keeps the number and types of the outputs, but not the control edges.
            stand_in.CopyFrom(node)
            del stand_in.input[:]
            stand_in.input.extend(self._nodes.inputs(node))
            if self._traits.writes(node) or node.op in EXIT:
                self._write_nothing(stand_in)
        stand_in.input.append("^" + after)
        self._stand_ins[name] = stand_in

    def _write_nothing(self, call):
        """Changes a call to run copies of its functions that do not write."""
        nodes = open_functions(self._meta)
        inside = [node for node in nodes if home(node.name) and top(node.name) == call.name]
        inside = [node for node in inside if node.op != ARGUMENT and not self._traits.bodies(node)]
        names = [node.name for node in inside if self._traits.writes(node)]
        if not names or not all(can_do_without(nodes, name) for name in names):
            raise BadInput(
                "{} ({}) gives a value after the gradients are applied, by what the chief does for "
                "all: have it waited for alone, by tf.group, or take the value from before them, "
                "and export again".format(call.name, call.op)
            )
        run_without({call.name: call}, self._meta.graph_def.library, names)

    def finish(self, graph):
        """Puts the stand-ins in their places; appends the ops that they replace, and all new ops.

        Args:
            graph: the MetaGraph as a tf.Graph, with the ops that the library added to it.

        Returns:
            How many ops it has added.
        """
        renamed = self._chief.ops & set(self._stand_ins)
        library = {f.signature.name for f in self._meta.graph_def.library.function}
        built_on = graph.as_graph_def()
        new = [node for node in built_on.node if node.name not in self._nodes]
        bodies = [f for f in built_on.library.function if f.signature.name not in library]
        built = new + [node for body in bodies for node in body.node_def]
        for node in built:
            self._strip(node)
        # The stand-in takes the op's own name, so the chief's readers must follow the original
        # to its new one.
        for node in new + [self._nodes[name] for name in self._chief.ops]:
            for number, tensor in enumerate(node.input):
                name, output = split(tensor)
                if name in renamed:
                    node.input[number] = join(APPLIED + name, output)
        applied = []
        for name, stand_in in self._stand_ins.items():
            node = self._nodes[name]
            if name in renamed:
                applied.append(tf.NodeDef())
                applied[-1].CopyFrom(node)
                applied[-1].name = APPLIED + name
            node.CopyFrom(stand_in)
        self._meta.graph_def.node.extend(applied + new)
        self._meta.graph_def.library.function.extend(bodies)
        self._list_ops({node.op for node in built})
        return len(new)

    def _strip(self, node):
        """Removes attributes that an older TensorFlow may reject: default values, and `_NEW`."""
        for attr in op_def(node.op).attr:
            if attr.name not in node.attr:
                continue
            has_default = attr.HasField("default_value")
            is_default = has_default and node.attr[attr.name] == attr.default_value
            if is_default or (node.op, attr.name) in _NEW:
                del node.attr[attr.name]

    def _list_ops(self, types):
        """Adds the definitions of new ops to the list of op definitions that the graph uses."""
        listed = self._meta.meta_info_def.stripped_op_list.op  # empty if the export wrote none
        missing = types - {definition.name for definition in listed}
        if listed:
            listed.extend(op_def(op) for op in sorted(missing))


def forget_shapes(meta):
    """Removes the shapes on which TensorFlow versions differ; returns how many ops had them.

    An export records the shapes of every op's outputs, and an import compares them with its own.
    The gradient of a fused BatchNorm has two outputs that nothing uses; on their shapes 1.15 and
    2.x disagree where the BatchNorm does not train, and 2.x refuses the graph for that.
    """
    noted = [
        node
        for node in meta.graph_def.node
        if node.op.startswith("FusedBatchNormGrad") and _SHAPES in node.attr
    ]
    for node in noted:
        del node.attr[_SHAPES]
    return len(noted)
