"""Finding and rewriting parts of TensorFlow 1 graphs: BatchNorm, training ops, MetaGraphs.

Nothing is here yet; README.md says what works today.
"""

__all__: list = []
