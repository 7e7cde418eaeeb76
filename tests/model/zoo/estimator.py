"""The canned Estimators of TensorFlow 1.15, trained by `Estimator.train` from an input_fn."""

import glob
import os
import unittest.mock

import tensorflow.compat.v1 as tf
from tensorflow.python.training import training_util

from tests.model.zoo import log
from tests.model.zoo.model import TRAINING, Model, Trained

BATCH, ROWS = 32, 160
DENSE = ["age", "heat", "price", "stats", "importance", "user", "item_id", "item", "city", "place"]
DENSE += ["hour", "device", "words", "codes"]
SPARSE = ["tags", "tag_scores", "tag_ids", "history_items"]


class Canned:
    """One of the canned models.

    Args:
        make: (vocabulary, mode, config) -> Estimator, and its optimizers by the scope of the
            variables that each trains; vocabulary: path of a file.
        label: feature of the log.
        noisy: whether it has dropout.
        exports: {"parsed" or "raw": the columns that it reads, a function of the vocabulary}.
    """

    modes = True

    def __init__(self, make, label="clicked", noisy=False, exports=None):
        self._make, self._label, self.noisy, self.exports = make, label, noisy, exports or {}
        self._folder = ""  # until it is trained

    def rows(self, count, seed, odd=False):
        """Rows of the log."""
        return log.draw(count, seed, odd)

    def like(self, mode):
        """The mode that has the same graph."""
        return TRAINING if mode.training and not self.noisy else mode

    def train(self, graphs, folder, steps):
        """Trains in `folder`; returns the prefix of the checkpoint."""
        self._folder = folder
        with open(self.vocabulary(), "wb") as file:
            file.write(b"".join(place + b"\n" for place in log.PLACES))
        estimator = self.estimator(TRAINING)[0]
        with unittest.mock.patch.object(training_util, "write_graph"):  # as text, which takes long
            estimator.train(self._input_fn, steps=steps)
        for bulky in glob.glob(os.path.join(folder, "events.*")):
            os.remove(bulky)
        return estimator.latest_checkpoint()

    def vocabulary(self):
        return os.path.join(self._folder, "places.txt")

    def estimator(self, mode):
        """The Estimator, new, and its optimizers by scope."""
        config = tf.estimator.RunConfig(
            model_dir=self._folder,
            tf_random_seed=3,
            save_summary_steps=None,
            log_step_count_steps=None,
        )
        return self._make(self.vocabulary(), mode, config)

    def build(self, mode):
        """The graph that `Estimator.train` or `evaluate` builds."""
        with tf.Graph().as_default():  # heads check their arguments with ops
            estimator, optimizers = self.estimator(mode)
        tf.train.create_global_step()  # first, as Estimator.train does: names depend on it
        batches = tf.data.make_initializable_iterator(self._input_fn())
        features, label = batches.get_next()
        keys = tf.estimator.ModeKeys
        spec = estimator.model_fn(
            dict(features), label, keys.TRAIN if mode.training else keys.EVAL, estimator.config
        )
        return Model(
            inputs=features,
            labels={self._label: label},
            outputs={name: spec.predictions[name] for name in ("logits", "probabilities")},
            loss=spec.loss,
            train_op=spec.train_op,
            optimizers=[
                Trained(optimizer, tf.trainable_variables(scope))
                for scope, optimizer in optimizers.items()
            ],
        )

    def _input_fn(self):
        rows = self.rows(ROWS, seed=1)
        features = {name: rows[name] for name in DENSE}
        for name in SPARSE:
            features[name] = tf.SparseTensor(*log.sparse(rows[name]))
        batches = tf.data.Dataset.from_tensor_slices((features, rows[self._label]))
        return batches.repeat().batch(BATCH)
