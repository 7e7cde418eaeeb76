"""What MonitoredTrainingSession has saved when it is closed."""

import time

import pytest

from semisync.chief import thread
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Job


class OwnSaver(tf.train.Saver):
    """One with its own `save`, as TFRA puts in the place of TensorFlow's."""

    def save(self, *args, **kwargs):
        return super().save(*args, **kwargs)


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
