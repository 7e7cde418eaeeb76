"""A computation that is traced once, and called wherever it is needed.

A model of hundreds of tables needs the same ops for each of them. Built anew they take most of the
time that it takes to build the graph; a call is a single op. TensorFlow puts the body in its place
when a session first runs it, on the device of the call, so that it runs as if it had been built.
"""

import weakref
from typing import Any

from semisync.common.compat import raw_ops, tf


class Template:
    """A function of tensors that uses no variables.

    Args:
      function: of tensors; its name goes into the graph's library. Returns a tuple of tensors.
      specs: a (dtype, shape) for each of them.
    """

    def __init__(self, function, specs):
        self._name = function.__name__
        self._known_to: Any = weakref.WeakSet()  # the graphs that have it
        # A graph of its own: the function keeps the one that it is traced in.
        with tf.Graph().as_default():
            signature = [tf.TensorSpec(shape, dtype) for dtype, shape in specs]
            self._traced = tf.wrap_function(function, signature, self._name)

    def __call__(self, *tensors):
        """Returns the list of tensors that the function gives."""
        graph = tf.get_default_graph()
        if graph not in self._known_to:
            self._known_to.add(graph)
            self._traced.add_to_graph(graph)
        return raw_ops.PartitionedCall(
            args=tensors,
            Tout=self._traced.output_dtypes,
            f=tf.compat.as_str(self._traced.name),
            name=self._name,
        )
