"""The nodes of one of TensorFlow's graphs: a MetaGraph's, or one that is being built."""

import functools
import operator

from graph_rewrite.graph.index import Index
from semisync.common.compat import tf

_MOST_VALUES = 1 << 20


class Nodes(Index):
    """The nodes of one GraphDef, or of one function of its library.

    Args:
        nodes, results: see `graph_rewrite.graph.index`.

    Examples:
        >>> x = tf.placeholder(tf.float32, [None], name="x")
        >>> y = tf.nn.relu(x + 1.0, name="y")
        >>> nodes = graph_rewrite.Nodes.of(tf.get_default_graph())
        >>> nodes.maker("y:0").op, sorted(nodes.ancestors(["y"]))
        ('Relu', ['add', 'add/y', 'x', 'y'])
    """

    @classmethod
    def of(cls, graph):
        """The nodes of a graph.

        Args:
            graph: a GraphDef, a MetaGraphDef or a tf.Graph.

        Returns:
            A `Nodes`.
        """
        graph = graph.as_graph_def() if hasattr(graph, "as_graph_def") else graph
        return cls(getattr(graph, "graph_def", graph).node)

    def constant(self, node):
        """The value of a Const; None where it has more than a million values.

        Args:
            node: a NodeDef.

        Returns:
            A NumPy array, or None.
        """
        stored = node.attr["value"].tensor
        sizes = [dim.size for dim in stored.tensor_shape.dim]
        # A damaged Const may repeat its one value to fill more than the memory.
        few = functools.reduce(operator.mul, sizes, 1) <= _MOST_VALUES
        return tf.make_ndarray(stored) if few else None
