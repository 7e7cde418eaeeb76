"""The one module that knows which TensorFlow is installed.

Everything in the TF world imports `tf` from here: TensorFlow 1.15's own surface, which
TensorFlow 2.x still carries as `tensorflow.compat.v1`.
"""

import tensorflow.compat.v1 as tf
from tensorflow.core.framework.variable_pb2 import VariableDef

raw_ops = tf.raw_ops


def op_def(name):
    """The OpDef of an op, or None where this TensorFlow lacks the op."""
    from tensorflow.python.framework import op_def_registry

    get = getattr(op_def_registry, "get", None)  # not in 1.15
    return get(name) if get else op_def_registry.get_registered_ops().get(name)


def constant(tensor):
    """The value of a constant, a NumPy array; None for any other tensor.

    Not tf.get_static_value: the tensor could not be fed any more.
    """
    return tf.make_ndarray(tensor.op.get_attr("value")) if tensor.op.type == "Const" else None


def fetched_ops(graph, fetches):
    """The ops that a session's run of `fetches` asks for, of any structure that it takes, a set."""
    from tensorflow.python.client.session import _FetchMapper

    with graph.as_default():
        elements = _FetchMapper.for_fetch(fetches).unique_fetches()
    return {getattr(element, "op", element) for element in elements}


__all__ = ["VariableDef", "constant", "fetched_ops", "op_def", "raw_ops", "tf"]
