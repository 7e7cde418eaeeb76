"""A value per graph, kept for as long as the graph lives.

A job may build one graph after another, as each `train()` of an Estimator does. The values refer to
the graph, so a dictionary with weak keys would never free one; they are attributes of the graph
instead.
"""

from semisync.common.compat import tf


class PerGraph:
    """One value per graph, made on first use.

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
