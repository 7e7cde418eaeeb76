"""Finding and rewriting parts of TensorFlow 1 graphs: training ops, MetaGraphs.

Nothing heavy is imported before it is used: `import graph_rewrite` needs no TensorFlow.
"""

import importlib

_HOME = {
    "BatchNorm": "graph_rewrite.batch_norm.model",
    "Match": "graph_rewrite.patterns.language",
    "Nodes": "graph_rewrite.graph.index",
    "Report": "graph_rewrite.metagraph.report",
    "Update": "graph_rewrite.batch_norm.model",
    "find_batch_norms": "graph_rewrite.batch_norm.find",
    "find_updates": "graph_rewrite.batch_norm.find",
    "match": "graph_rewrite.patterns.language",
    "semi_synchronize": "graph_rewrite.metagraph.semi_synchronize",
}

__all__ = sorted(_HOME)


def __getattr__(name):
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError("module 'graph_rewrite' has no attribute {!r}".format(name))


def __dir__():
    return __all__
