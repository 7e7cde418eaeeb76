"""Helpers that build the library's own ops: on the CPU, and as few as possible.

A model of hundreds of tables needs the same ops for each of them. Building these for each table
takes most of the time of building the graph; a call of a function is a single op. TensorFlow
inlines its body when a session first runs it, on the device of the call, so that it runs as if it
had been built there.
"""

import re
import weakref
from typing import Any

from semisync.common.compat import raw_ops, tf

_KIND = re.compile("/(device:)?[CG]PU:.*", re.IGNORECASE)


def on_cpu(device):
    """The CPU of the process that a device string names; "" names this process.

    The library's own ops hold strings and counters: strings have no GPU kernel.
    """
    return _KIND.sub("", device) + "/device:CPU:0"


def flat(tensors):
    """The values of tensors as vectors, a list of [n]."""
    return shaped(tensors, [[-1]] * len(tensors))


def shaped(tensors, shapes):
    """Tensors with other static shapes, a list; tensors of one shape share a constant."""
    constants = {}
    reshaped = []
    for tensor, shape in zip(tensors, map(tuple, shapes)):
        if not tensor.shape.ndims == len(shape) == 1:
            if shape not in constants:
                constants[shape] = tf.constant(shape, tf.int32)
            tensor = tf.reshape(tensor, constants[shape])
        reshaped.append(tensor)
    return reshaped


def value_or_initial(variable):
    """The value of a variable; its initial value where it has none."""
    is_there = variable.is_initialized()
    return tf.cond(is_there, variable.read_value, lambda: tf.identity(variable.initial_value))


class TracedFunction:
    """A function of tensors alone, traced once and called wherever it is needed.

    Args:
        function: of tensors; returns a tuple of tensors. The graph's library holds it by its name.
        specs: a (dtype, shape) per tensor.
    """

    def __init__(self, function, specs):
        self._name = function.__name__
        self._known_to: Any = weakref.WeakSet()  # the graphs that have it
        # Its own graph: the function keeps the one that it is traced in.
        with tf.Graph().as_default():
            signature = [tf.TensorSpec(shape, dtype) for dtype, shape in specs]
            self._traced = tf.wrap_function(function, signature, self._name)

    def __call__(self, *tensors):
        """Returns the list of tensors that the function returns."""
        return raw_ops.PartitionedCall(args=tensors, **self._options())

    def call_on(self, device, *tensors):
        """The same, run as a whole on a device of another process, or of this one."""
        return raw_ops.RemoteCall(target=device, args=tensors, **self._options())

    def _options(self):
        graph = tf.get_default_graph()
        if graph not in self._known_to:
            self._known_to.add(graph)
            self._traced.add_to_graph(graph)
        return {
            "Tout": self._traced.output_dtypes,
            "f": tf.compat.as_str(self._traced.name),
            "name": self._name,
        }
