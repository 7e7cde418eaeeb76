"""Models written with placeholders or a tf.data iterator, trained in a session."""

import os

import tensorflow.compat.v1 as tf

from tests.model.zoo import examples, feeding, log
from tests.model.zoo.graphs import session
from tests.model.zoo.model import TRAINING

BATCH, ROWS = 32, 160


class ByHand:
    """One of the models written by hand.

    Args:
        build: `build(mode)`, see `model`.
        modes: whether the graph depends on the mode.
        functional: whether tf.cond makes one op with two functions, as in TensorFlow 2.x.
        exports: ["simple"] for a SavedModel, too.
        parsed: what tf.parse_example takes, where the feature "example" is fed.
    """

    def __init__(self, build, modes=False, functional=False, exports=(), parsed=None):
        self._build, self.modes, self._functional = build, modes, functional
        self.exports, self._parsed = dict.fromkeys(exports), parsed

    def rows(self, count, seed, odd=False):
        """Rows of the log with all features that the model reads."""
        rows = log.draw(count, seed, odd)
        if self._parsed:
            rows["example"] = examples.serialized(rows, self._parsed)
        return rows

    def like(self, mode):
        """The mode that has the same graph."""
        return mode if self.modes else TRAINING

    def build(self, mode):
        """Adds the model to the default graph."""
        if not self._functional:
            return self._build(mode)
        tf.enable_control_flow_v2()
        try:
            return self._build(mode)
        finally:
            tf.disable_control_flow_v2()

    def train(self, graphs, folder, steps):
        """Trains; returns the prefix of the checkpoint in `folder`."""
        graph, model = graphs.built(TRAINING)
        with graph.as_default(), session(rewritten=False) as running:
            tensors = dict(model.inputs, **model.labels)
            rows = self.rows(ROWS, seed=1)
            saver = tf.train.Saver()
            running.run([tf.global_variables_initializer(), tf.tables_initializer()])
            for step in range(steps):
                batch = log.take(rows, step * BATCH, (step + 1) * BATCH)
                fed = feeding.feed(tensors, feeding.values(tensors, batch))
                fed.update(feeding.flags(model, "training"))
                running.run(model.train_op, fed)
            return saver.save(running, os.path.join(folder, "model.ckpt"), global_step=steps)
