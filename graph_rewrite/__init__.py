"""Finding and rewriting parts of TensorFlow 1 graphs: training ops, MetaGraphs.

Nothing heavy is imported before it is used: `import graph_rewrite` needs no TensorFlow.
"""

import importlib

_HOME = {
    "BatchNorm": "graph_rewrite.batch_norm",
    "Match": "graph_rewrite.pattern",
    "NearMiss": "graph_rewrite.pattern",
    "Nodes": "graph_rewrite.nodes",
    "Report": "graph_rewrite.report",
    "Update": "graph_rewrite.update",
    "find_batch_norms": "graph_rewrite.batch_norms",
    "find_updates": "graph_rewrite.batch_norms",
    "match": "graph_rewrite.pattern",
    "semi_synchronize": "graph_rewrite.meta_graph",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'graph_rewrite' has no attribute {!r}".format(name))


def __dir__():
    return __all__
