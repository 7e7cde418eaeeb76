"""The held-out rows scored by one model with each of its statistics.

    own           the BatchNorms' moving statistics
    layers, ...   those kept beside them, `norm.FORMS`
    recomputed    of SAMPLE training rows by the final weights: what moving statistics stand for
    batch         none: the rows are normalised by each other, as they are scored, 8192 at a time

OUT/STATISTICS.npy are the scores, float32; OUT/distances.json says of the moving ones how far they
are from the recomputed: "mean", the root mean square over the units of the means' difference in
standard deviations, and "variance", that of the logarithm of the variances' ratio.
"""

import os

import numpy as np

from benchmarks.auc_evidence_parts import model
from benchmarks.auc_evidence_parts.training import Inputs
from benchmarks.batch_norm_auc_parts import norm
from semisync.common.compat import tf
from semisync.common.files import write_json

SAMPLE = 100000  # training rows
PART = 8192  # rows at a time
MOVING = ("own",) + norm.FORMS
STATISTICS = MOVING + ("recomputed", "batch")


class Scorer:
    """The model of OUT/model in the current session.

    Args:
        by_batch: True normalises by the batch, False by moving statistics, which `take` sets.
    """

    def __init__(self, session, out, answers, by_batch):
        self._session, self._out, self._answers = session, out, answers
        self._inputs, self._norms = Inputs(answers), norm.Norms(training=by_batch)
        inputs = self._inputs
        self._logit = model.logits(inputs.fields, inputs.bags, answers.about, 0, self._norms)
        self._restore(tf.trainable_variables())

    def _restore(self, variables):
        tf.train.Saver(variables).restore(self._session, os.path.join(self._out, "model"))

    def take(self, name):
        """Gives the layers the statistics `name`, of MOVING."""
        self._restore(self._norms.moving(None if name == "own" else name))

    def statistics(self):
        """[(mean, variance)] that the layers have now."""
        return self._session.run([layer.moving for layer in self._norms.layers])

    def save(self, name, rows):
        """Scores `rows`, a slice, into OUT/NAME.npy."""
        inputs = self._inputs
        fed = inputs.fields, inputs.bags, self._answers, rows
        scores = model.score(self._session, self._logit, *fed, size=PART)
        np.save(os.path.join(self._out, name + ".npy"), scores)

    def recompute(self, rows):
        """Gives the layers the statistics of a sample of `rows`, the lower layers first."""
        random = np.random.RandomState(0)
        sample = random.permutation(rows.stop - rows.start)[:SAMPLE] + rows.start
        parts = np.array_split(sample, -(-len(sample) // PART))
        share = np.array([len(part) for part in parts])[:, None] / len(sample)
        run, feed = self._session.run, self._inputs.feed
        for layer in self._norms.layers:
            moments = [run(layer.moments, feed(part)) for part in parts]
            means, variances = (np.array(values, np.float64) for values in zip(*moments))
            mean = (share * means).sum(0)
            variance = (share * (variances + (means - mean) ** 2)).sum(0)
            for variable, value in zip(layer.moving, (mean, variance)):
                variable.load(value.astype(np.float32), self._session)


def leave_scores(out, answers, train, held_out):
    """Scores OUT/model with each of STATISTICS; `train` and `held_out` are slices of rows."""
    moving = {}
    with tf.Graph().as_default(), tf.Session() as session:
        scorer = Scorer(session, out, answers, by_batch=False)
        for name in MOVING:
            scorer.take(name)
            scorer.save(name, held_out)
            moving[name] = scorer.statistics()
        scorer.recompute(train)
        scorer.save("recomputed", held_out)
        true = scorer.statistics()
    with tf.Graph().as_default(), tf.Session() as session:
        Scorer(session, out, answers, by_batch=True).save("batch", held_out)
    distances = {name: distance(statistics, true) for name, statistics in moving.items()}
    write_json(os.path.join(out, "distances.json"), distances)


def distance(moving, true):
    """{"mean", "variance"} of lists of (mean, variance), one per layer, over all their units."""
    off = [
        (mean - right) / np.sqrt(v + norm.EPSILON) for (mean, _), (right, v) in zip(moving, true)
    ]
    logs = [
        np.log((variance + norm.EPSILON) / (right + norm.EPSILON))
        for (_, variance), (_, right) in zip(moving, true)
    ]
    return {
        name: float(np.sqrt(np.mean(np.concatenate(values) ** 2)))
        for name, values in (("mean", off), ("variance", logs))
    }
