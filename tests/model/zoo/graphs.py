"""The graphs of a model of the zoo, each built once."""

import tensorflow.compat.v1 as tf

SEED = 3


class Graphs:
    """Builds the graph of a mode when it is first asked for.

    Args:
        entry: a model of the registry, whose `like(mode)` names the mode with the same graph.
    """

    def __init__(self, entry):
        self._entry, self._built = entry, {}

    def built(self, mode):
        """(graph, `Model`) of a mode."""
        mode = self._entry.like(mode)
        if mode not in self._built:
            with tf.Graph().as_default() as graph:
                tf.set_random_seed(SEED)
                self._built[mode] = graph, self._entry.build(mode)
        return self._built[mode]


def session(rewritten=True):
    """A session of one thread, so that sums have one order.

    Args:
        rewritten: TensorFlow's graph optimizer is at work, as in a job. It rewrites the graph for
            each new set of fetches, which takes longer than the few steps that are trained.
    """
    config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = not rewritten
    return tf.Session(config=config)
