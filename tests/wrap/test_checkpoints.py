"""What MonitoredTrainingSession has saved when it is closed."""

import pytest

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
