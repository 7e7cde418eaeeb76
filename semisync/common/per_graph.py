"""What the library keeps for a graph, for as long as the graph lives.

A job may build one graph after another, as each `train()` of an Estimator does. What is kept refers
to the graph, so a dictionary with weak keys would keep every graph for ever; here it hangs on the
graph itself.
"""

from semisync.common.compat import tf


class PerGraph:
    """One value per graph, made when it is first asked for.

    Args:
      make: function without arguments.
    """

    def __init__(self, make):
        self._make = make

    def of(self, graph=None):
        """The value that belongs to a tf.Graph, by default the default one."""
        graph = graph or tf.get_default_graph()
        if not hasattr(graph, "_semisync"):
            graph._semisync = {}
        if self not in graph._semisync:
            graph._semisync[self] = self._make()
        return graph._semisync[self]
