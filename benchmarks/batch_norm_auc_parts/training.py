"""One run of a model with BatchNorm: `auc_evidence_parts.training` with these differences.

1. A worker reads one part of the training rows, partitioned by skill, like a log that is kept by
   key.
2. The rate is constant, as in continuous training.
3. The BatchNorms' updates wait for the batch's pause, as its gradients do: a late batch's
   statistics arrive late. Mode "semi-sync" or "sync" with `batch_norm` "aggregate" removes the
   updates from the graph, and the chief moves the statistics.
4. If the run "hangs", the last worker hangs in its first batch of the second half, and continues
   when the others have trained the rest: its batch arrives last.
5. Beside the BatchNorms' own statistics, every worker keeps others from the same batches in each
   form of `norm.FORMS`: those that the same model would have without semisync. Nothing reads them,
   so one run has both for the same weights.
"""

import itertools
import os
import time

import numpy as np

from benchmarks.auc_evidence_parts import model
from benchmarks.auc_evidence_parts.training import Training
from benchmarks.batch_norm_auc_parts import norm
from graph_rewrite import find_batch_norms
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.demo.tensorflow.modes import LEDGER

SKILL = "skill"  # the field by which the rows are cut into parts
HANG = np.inf  # seconds: the pause of the batch that hangs
TIMEOUT = 600.0  # seconds that a worker hangs at most


class NormTraining(Training):
    """As Training, but `run` also has "batch_norm", "momentum" and "hangs" (a bool)."""

    def __init__(self, run, settings, answers, rows, task, out):
        self._run, self._norms = run, norm.Norms(training=True)
        self._beside = []  # moving variables that the model does not use
        self._own_batches = part_batches(answers, rows, settings, run["seed"], task)
        super().__init__(run, settings, answers, rows, task, out)
        if run["hangs"] and task == settings.workers - 1:
            self._pauses[len(self._pauses) // 2 :] = HANG

    def _logit(self, inputs, answers, seed):
        return model.logits(inputs.fields, inputs.bags, answers.about, seed, self._norms)

    def _plain_optimizer(self, run, settings, steps):
        return tf.train.AdamOptimizer(run["learning_rate"])

    def _wrapped(self, optimizer, settings, **more):
        return super()._wrapped(optimizer, settings, batch_norm=self._run["batch_norm"], **more)

    def _updates(self):
        momentum, layers = self._run["momentum"], self._norms.layers
        updates = []
        for layer in layers:
            updates += [
                norm.move(variable, statistic, momentum, "layers")
                for variable, statistic in zip(layer.moving, layer.moments)
            ]
        if self._run["mode"] in LEDGER:
            _check(find_batch_norms(tf.get_default_graph()), len(layers))
        for layer in layers:
            statistics = _unseen(layer.moments)
            for form in norm.FORMS:
                variables, moves = norm.keep(form, layer, statistics, momentum)
                self._beside += variables
                updates += moves
        return updates

    def _wait(self, seconds):
        if seconds != HANG:
            return super()._wait(seconds)
        # Not for the chief, which ends after all others.
        wait_for([os.path.join(self._out, "worker-%d.json" % k) for k in range(1, self._task)])
        return seconds

    def _rows(self, number):
        return next(self._own_batches)

    def _kept(self):
        return tf.trainable_variables() + list(self._norms.moving().values()) + self._beside


def part_batches(answers, rows, settings, seed, task):
    """Endlessly yields the local batches of one worker, each int64 [local_batch] row numbers.

    The rows are sorted by skill and cut into parts of equal size, one per worker, each shuffled.
    """
    skills = answers.fields[rows, list(answers.about["fields"]).index(SKILL)]
    part = np.array_split(np.argsort(skills, kind="stable"), settings.workers)[task] + rows.start
    part = np.random.RandomState([seed, task]).permutation(part)
    for start in itertools.count(0, settings.local_batch):
        yield part.take(np.arange(start, start + settings.local_batch), mode="wrap")


def wait_for(paths):
    """Waits until all files exist; raises SemisyncError after TIMEOUT."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        missing = [path for path in paths if not os.path.exists(path)]
        if not missing:
            return
        if time.monotonic() > deadline:
            raise SemisyncError("not there after {:.0f} s: {}".format(TIMEOUT, missing))
        time.sleep(0.05)


def _check(batch_norms, count):
    """Checks that graph_rewrite sees the BatchNorms; otherwise there is nothing to compare."""
    seen = [bn for bn in batch_norms if len(bn.updates) == 2 and not bn.left_alone]
    if len(seen) != count:
        raise SemisyncError("{} of {} BatchNorms found: {}".format(len(seen), count, batch_norms))


def _unseen(statistics):
    """The same values, hidden from graph_rewrite: it leaves alone a BatchNorm with two copies."""
    dtypes = [statistic.dtype for statistic in statistics]
    hidden = tf.py_func(lambda *values: values, statistics, dtypes)
    for copy, statistic in zip(hidden, statistics):
        copy.set_shape(statistic.shape)
    return hidden
