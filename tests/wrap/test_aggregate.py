"""`aggregate`: what else a batch sends shares its fate, and arrives once per global step."""

import numpy as np
import pytest

import semisync
from semisync.common.compat import tf
from tests.wrap.one_process import Job


class Counting:
    """Aggregates the number of examples of a batch and a vector; keeps those of each step."""

    def __init__(self):
        self.steps = []
        self.fetches = None

    def __call__(self, job):
        self._count = tf.get_variable("count", initializer=0.0, trainable=False)
        self._arrivals = tf.get_variable("arrivals", initializer=0, trainable=False)
        self.examples = tf.placeholder_with_default(1.0, [])
        vector = tf.stack([self.examples, 2 * self.examples])
        job.optimizer.aggregate([self.examples, vector], "/cpu:0", self._update)

    def _update(self, weights, tensors):
        examples, vectors = tensors
        self.fetches = [weights, examples, vectors]
        return tf.group(
            self._count.assign_add(tf.reduce_sum(weights * examples)),
            self._arrivals.assign_add(1),
        )

    def observe(self, step, values):
        self.steps.append([values[0].tolist(), values[1].tolist()])
        np.testing.assert_array_equal(values[2], np.outer(values[1], [1, 2]))


def run(batches, batches_per_step=2, **options):
    """Trains a batch per number of examples, or (number, token); returns (job, counting)."""
    counting = Counting()
    job = Job(batches_per_step, extras=counting, paced=True, **options)
    with job.session(observe=[(counting.fetches, counting.observe)]) as session:
        for batch in batches:
            examples, token = batch if isinstance(batch, tuple) else (batch, None)
            if token is not None:
                session.run(job.set_token, {job.new_token: token})
            session.run(job.train_op, {job.x: 0.0, counting.examples: examples})
    return job, counting


def test_the_tensors_of_a_global_batch_arrive_together_once():
    job, counting = run([1, 2, 3, 4, 5, 6])
    assert counting.steps == [[[1, 1], [1, 2]], [[1, 1], [3, 4]], [[1, 1], [5, 6]]]
    assert job.after["count"] == 21
    assert job.after["arrivals"] == 3 == job.after["global_step"]


@pytest.mark.parametrize("on_stale", ["keep", "drop"])
@pytest.mark.long
def test_the_tensors_of_a_stale_batch_are_absent(on_stale):
    job, counting = run(
        [1, 2, 3, 4, (100, 0), 6, 7, 8][: 8 if on_stale == "keep" else 7],
        staleness=semisync.Threshold(1),
        on_stale=on_stale,
    )
    kept = [[[1], [6]], [[1, 1], [7, 8]]]
    dropped = [[[1, 1], [6, 7]]]
    assert counting.steps[2:] == (kept if on_stale == "keep" else dropped)
    assert job.after["count"] == sum(sum(examples) for _, examples in counting.steps)


def test_the_tensors_of_a_decayed_batch_come_with_its_weight():
    job, counting = run([1, 2, 3, 4, (100, 0), 6], staleness=semisync.Inverse())
    assert counting.steps[2:] == [[[0.5, 1], [100, 6]]]
    assert job.after["count"] == 1 + 2 + 3 + 4 + 50 + 6


@pytest.mark.long
def test_a_global_batch_of_stale_batches_alone_has_no_tensors():
    job, counting = run([1, (100, 0), 3], batches_per_step=1, staleness=semisync.Threshold(0))
    assert counting.steps == [[[1], [1]], [[], []], [[1], [3]]]
    assert job.after["arrivals"] == 3


@pytest.mark.long
def test_the_last_smaller_global_batch_has_its_own_tensors():
    job, counting = run([1, 2, 3], batches_per_step=2)
    assert counting.steps == [[[1, 1], [1, 2]], [[1], [3]]]
    assert job.after["count"] == 6
