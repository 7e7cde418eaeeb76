"""Invariant 8: a job over hash tables goes on from one checkpoint with semisync and without."""

from tensorflow_recommenders_addons import dynamic_embedding as de

from semisync.common.compat import tf
from tests.tfra.model import ALL, M, Model, Values, assert_same, union, wrapped


def leg(directory, ours, batches):
    """Goes on from what is in `directory` for some batches; returns all values at both ends."""
    with tf.Graph().as_default():
        model, optimizer = Model(), tf.train.AdamOptimizer(0.1)
        optimizer = wrapped(optimizer) if ours else de.DynamicEmbeddingOptimizer(optimizer)
        train = model.minimize(optimizer)
        ends = Ends()
        hooks = [optimizer.make_session_run_hook(True)] if ours else []
        with tf.train.MonitoredTrainingSession(
            hooks=[*hooks, ends], checkpoint_dir=directory, save_checkpoint_steps=10**6
        ) as session:
            for batch in batches:
                session.run(train, model.feed(batch))
        return ends.before, ends.after


class Ends(tf.train.SessionRunHook):
    """All values at the beginning of a session and at its end."""

    def __init__(self):
        self._values = Values()

    def after_create_session(self, session, coord):
        self.before = self._values.read(session)

    def end(self, session):
        self.after = self._values.read(session)


def test_with_and_without_semisync_a_job_goes_on_from_the_same_checkpoint(tmp_path):
    unions = [union(ALL[at : at + M]) for at in range(0, len(ALL), M)]
    legs = [(False, unions[:1]), (True, ALL[M : 2 * M]), (False, unions[2:3]), (True, ALL[3 * M :])]
    after = None
    for ours, batches in legs:
        before, at_end = leg(str(tmp_path / "mixed"), ours, batches)
        if after is not None:
            assert_same(before, after)
        after = at_end
    _, alone = leg(str(tmp_path / "alone"), False, unions)
    assert_same(after, alone)
