"""Finding and rewriting parts of TensorFlow 1 graphs: training ops, MetaGraphs.

Nothing heavy is imported before it is used: `import graph_rewrite` needs no TensorFlow.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
