"""Graphs as a stranger may write them: nodes that no TensorFlow would make, as a frozen graph."""

import numpy as np


class GraphFile:
    """A GraphDef that is built node by node.

    Args:
        path: where `save` writes it.

    Attributes:
        graph_def: what there is of it.
    """

    def __init__(self, path=None):
        import tensorflow

        self._tf = tensorflow.compat.v1
        self.graph_def = self._tf.GraphDef()
        self._path = path
        self.add("x", "Placeholder", dtype=np.float32, shape=[None, 3])

    def add(self, name, op, *inputs, **attributes):
        """Adds a node; returns its name."""
        _fill(self._tf, self.graph_def.node.add(name=name, op=op), inputs, attributes)
        return name

    def constant(self, name, value):
        """Adds a Const of all the values of an array."""
        return self.add(name, "Const", value=np.asarray(value), dtype=np.asarray(value).dtype)

    def spread(self, name, value, *shape, given=1):
        """Adds a Const of which the file has `given` values, the last for all others."""
        kind = np.asarray(value).dtype
        self.add(name, "Const", dtype=kind)
        tensor = self.graph_def.node[-1].attr["value"].tensor
        tensor.dtype = self._tf.as_dtype(kind).as_datatype_enum
        values = {"f": tensor.float_val, "i": tensor.int_val, "S": tensor.string_val}
        values[kind.kind].extend([value] * given)
        for size in shape:
            tensor.tensor_shape.dim.add(size=size)
        return name

    def function(self, name, result, *nodes):
        """Adds a function of a float `a`; nodes: (name, op, inputs, attributes)."""
        added = self.graph_def.library.function.add()
        added.signature.name = name
        added.signature.input_arg.add(name="a", type=1)
        added.signature.output_arg.add(name="o", type=1)
        added.ret["o"] = result
        for inner, op, inputs, attributes in nodes:
            _fill(self._tf, added.node_def.add(name=inner, op=op), inputs, attributes)

    def call(self, name, function, source):
        """Adds a call of a function of one float."""
        return self.add(name, "PartitionedCall", source, **called(function))

    def save(self):
        """Writes the file; returns its path."""
        with open(self._path, "wb") as file:
            file.write(self.graph_def.SerializeToString())
        return str(self._path)


def called(function):
    """The attributes of a call of a function of one float."""
    return {"f": function, "Tin": [np.float32], "Tout": [np.float32]}


def _fill(tf, node, inputs, attributes):
    node.input.extend(inputs)
    for key, value in attributes.items():
        one = node.attr[key]
        if key == "shape":
            for size in value:
                one.shape.dim.add(size=-1 if size is None else size)
        elif key == "f":
            one.func.name = value
        elif isinstance(value, np.ndarray):
            one.tensor.CopyFrom(tf.make_tensor_proto(value))
        elif isinstance(value, list):
            one.list.type.extend(tf.as_dtype(kind).as_datatype_enum for kind in value)
        elif isinstance(value, bool):
            one.b = value
        elif isinstance(value, int):
            one.i = value
        elif isinstance(value, bytes):
            one.s = value
        else:
            one.type = tf.as_dtype(value).as_datatype_enum
