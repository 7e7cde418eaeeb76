"""What a job reports: TensorBoard summaries, and one log line when it stalls."""

import glob
import logging

import pytest

import semisync
from semisync.chief import thread
from semisync.common.compat import tf
from tests.wrap.one_process import PATIENCE, Job


def events(folder):
    """The newest value of each summary: a number, or a histogram."""
    found = {}
    for path in sorted(glob.glob(str(folder / "events.*"))):
        for event in tf.train.summary_iterator(path):
            for value in event.summary.value:
                kind = value.WhichOneof("value")
                if kind in ("simple_value", "histo"):
                    found[value.tag] = getattr(value, kind)
    return found


def gauge(session, name):
    """What TensorBoard would show now."""
    (summary,) = tf.get_collection(tf.GraphKeys.SUMMARY_OP)
    shown = tf.Summary.FromString(session.run(summary)).value
    return next(value.simple_value for value in shown if value.tag == "GlobalBatch/" + name)


def test_tensorboard_shows_staleness_fates_waiting_and_batches_in_flight(tmp_path):
    job = Job(batches_per_step=2, staleness=semisync.Threshold(1), paced=True)
    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=[hook], save_summaries_steps=1
        ) as session:
            job.train(session, *[0.0] * 10)
            job.train_late(session, 0.0, token=0)
            job.train(session, *[0.0] * 9)
            # the chief publishes once per second
            while gauge(session, "stale") == 0 or gauge(session, "admitted") < 18:
                job.train(session, 0.0, 0.0)
            job.train(session, 0.0, 0.0)
    shown = events(tmp_path)
    assert shown["GlobalBatch/staleness"].max == 5
    assert shown["GlobalBatch/staleness"].num >= 20
    assert shown["GlobalBatch/stale"] == 1
    assert shown["GlobalBatch/admitted"] >= 18
    assert {"GlobalBatch/" + name for name in ("decayed", "lost", "in_flight", "pending")} < set(
        shown
    )
    assert shown["GlobalBatch/waiting_seconds"] > 0


def test_a_session_without_a_chief_shows_zeros():
    """As one that evaluates in the graph of the training, with tf.summary.merge_all()."""
    with Job().graph.as_default(), tf.Session() as session:
        shown = tf.Summary.FromString(session.run(tf.summary.merge_all())).value
    values = {value.tag: getattr(value, value.WhichOneof("value")) for value in shown}
    assert values.pop("GlobalBatch/staleness").num == 0
    assert len(values) == 8 and set(values.values()) == {0}


@pytest.mark.long
def test_a_job_that_stalls_says_once_who_is_missing(caplog, monkeypatch):
    job = Job(batches_per_step=2, paced=True)
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)

    def complaints():
        return [r.getMessage() for r in caplog.records if "no global step" in r.getMessage()]

    with caplog.at_level(logging.WARNING, "tensorflow"), job.session() as session:
        job.train(session, 1.0)
        while not job.hook.ledger.pending:
            session.run(job.step)
        monkeypatch.setattr(thread, "STALLED", 0.5)
        while not complaints():
            session.run(job.step)
    (said,) = complaints()
    assert "1 of 2 batches are there" in said
    assert job.optimizer.handles.worker.member in said
