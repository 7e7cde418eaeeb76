"""What MonitoredTrainingSession has saved when it is closed."""

import contextlib
import time

import pytest

from semisync.chief import thread
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Job


class OwnSaver(tf.train.Saver):
    """One with its own `save`, as TFRA puts in the place of TensorFlow's."""

    def save(self, *args, **kwargs):
        return super().save(*args, **kwargs)


@pytest.mark.few(1)
@pytest.mark.parametrize("saver", [tf.train.Saver, OwnSaver])
def test_the_last_checkpoint_has_what_was_applied_after_the_only_save(saver, tmp_path):
    job = Job(batches_per_step=2)
    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path),
            hooks=[hook],
            scaffold=tf.train.Scaffold(saver=saver()),
            save_checkpoint_secs=None,
            save_checkpoint_steps=10**6,  # saves at the start alone
        ) as session:
            job.train(session, 3.0)  # half a global batch, applied when the session ends
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(tmp_path)))
    assert reader.get_tensor("global_step") == 1
    assert reader.get_tensor("w") == -3.0


@pytest.mark.long
def test_a_save_wakes_a_chief_that_waits_for_the_next_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(thread, "WAKE_EVERY", 1e6)  # nothing else does
    job = Job(batches_per_step=2)
    with job.graph.as_default():
        saver, step = tf.train.Saver(), tf.train.get_global_step()
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            job.train(session, 3.0)
            job.train(session, 1.0)
            raw = session.run_step_fn(lambda step_context: step_context.session)
            while raw.run(step) < 1:
                time.sleep(0.01)
            path = saver.save(raw, str(tmp_path / "saved"))
    reader = tf.train.NewCheckpointReader(path)
    assert reader.get_tensor("global_step") == 1
    assert reader.get_tensor("w") == -2.0


def last_saved(folder):
    reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(str(folder)))
    return reader.get_tensor("global_step"), reader.get_tensor("w")


@contextlib.contextmanager
def half_a_batch_is_left(*hooks):
    """Trains a global batch, and half of one that is applied when the session is closed."""
    job = Job(batches_per_step=2)
    with job.graph.as_default():
        before = [make(job) for make in hooks]
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredSession(hooks=[*before, hook]) as session:
            job.train(session, 1.0, 3.0, 5.0)
            raw = session.run_step_fn(lambda step_context: step_context.session)
            while raw.run(job.step) < 1:
                time.sleep(0.01)
            yield job, raw


STEPS = {  # how jobs name what they save
    "tensor": lambda job, session: job.step,
    "number": lambda job, session: int(session.run(job.step)),
    "number of NumPy": lambda job, session: session.run(job.step),
    "nothing": lambda job, session: None,
}


@pytest.mark.parametrize("given", sorted(STEPS))
@pytest.mark.few(1)
def test_what_the_job_saves_after_its_last_run_is_saved_once_more(given, tmp_path):
    savers = {}

    def make_savers(job):
        savers.update((name, tf.train.Saver()) for name in ("one", "other"))
        return tf.train.SessionRunHook()

    with half_a_batch_is_left(make_savers) as (job, session):
        for name, saver in savers.items():
            saver.save(session, str(tmp_path / name / "m"), STEPS[given](job, session))
    for name in savers:
        assert last_saved(tmp_path / name) == (2, -7.0)
    assert tf.train.latest_checkpoint(str(tmp_path / "one")).endswith(
        "m" if given == "nothing" else "m-2"
    )


@pytest.mark.parametrize("given", sorted(STEPS))
@pytest.mark.long
def test_what_a_hook_saves_at_its_end_is_of_the_last_step(given, tmp_path):
    class Save(tf.train.SessionRunHook):
        def __init__(self, job):
            self._job, self._saver = job, tf.train.Saver()

        def end(self, session):
            self._saver.save(session, str(tmp_path / "m"), STEPS[given](self._job, session))

    with half_a_batch_is_left(Save):
        pass
    assert last_saved(tmp_path) == (2, -7.0)


@pytest.mark.long
def test_listeners_and_the_ends_of_other_hooks_see_the_last_step(tmp_path):
    told, final = [], []

    class Listener(tf.train.CheckpointSaverListener):
        def after_save(self, session, global_step_value):
            told.append(("saved", int(global_step_value)))

        def end(self, session, global_step_value):
            told.append(("end", int(global_step_value)))

    def saver(job):
        return tf.train.CheckpointSaverHook(
            str(tmp_path), save_steps=10**6, saver=tf.train.Saver(), listeners=[Listener()]
        )

    def final_ops(job):
        final.append(tf.train.FinalOpsHook([job.step, job.weight]))
        return final[0]

    with half_a_batch_is_left(final_ops, saver):
        pass
    assert told == [("saved", 0), ("saved", 2), ("end", 2)]
    assert final[0].final_ops_values == [2, -7.0]
