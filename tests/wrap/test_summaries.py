"""What the wrapped optimizer tells of a global batch by summaries, as LARS does."""

import glob

import pytest

from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Job


class Telling(tf.train.GradientDescentOptimizer):
    """Tells of the gradients that it applies, and of its rate."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        pairs = list(grads_and_vars)
        tf.summary.scalar("norm", tf.global_norm([gradient for gradient, _ in pairs]))
        tf.summary.scalar("rate", self._learning_rate, collections=["own", tf.GraphKeys.SUMMARIES])
        return super().apply_gradients(pairs, global_step, name)


def written(folder):
    """{tag: {step: value}} of the events in a folder."""
    values = {}
    for path in glob.glob(str(folder / "events*")):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                values.setdefault(value.tag, {})[event.step] = value.simple_value
    return values


def rate():
    return tf.placeholder_with_default(0.5, [], name="rate_of_the_run")


@pytest.mark.few(1)
@pytest.mark.parametrize("rate", [lambda: 0.5, rate])
def test_the_jobs_summaries_show_the_last_global_step(rate, tmp_path):
    job = Job(optimizer=lambda: Telling(rate()), paced=True)
    with job.graph.as_default():
        tf.summary.scalar("own", job.weight)
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=[hook], save_summaries_steps=1
        ) as session:
            for value in (1.0, 3.0, 2.0, 6.0, 5.0, 5.0):
                job.train(session, value)
    values = written(tmp_path)
    norms = {(1 + mean**2) ** 0.5 for mean in (2.0, 4.0, 5.0)}
    assert {round(norm, 5) for norm in values["norm"].values()} <= {
        round(norm, 5) for norm in norms
    }
    assert len(values["norm"]) >= 2
    assert set(values["rate"].values()) == {0.5}
    assert "own" in values


@pytest.mark.long
def test_every_collection_has_what_can_be_fetched():
    job = Job(optimizer=lambda: Telling(0.5), paced=True)
    with job.graph.as_default():
        (summary,) = tf.get_collection("own")
    with job.session() as session:
        job.train(session, 1.0, 3.0)
        while job.fate(session)[0] == 0:
            pass
        told = tf.Summary.FromString(session.run(summary))
    assert [value.simple_value for value in told.value] == [0.5]


@pytest.mark.long
def test_what_is_made_of_a_global_batch_says_so_when_it_is_fetched():
    job = Job(paced=True)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"no other run can: have it by hook\.observe"
    ), job.session() as session:
        session.run([job.train_op, job.optimizer.aggregated_gradients[0][0]], {job.x: 1.0})
