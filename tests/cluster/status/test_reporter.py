"""A chief that trains says how it goes, and goes on when nobody takes it."""

import contextlib
import logging
import threading

import pytest

from semisync.cluster.status import StatusHook
from semisync.cluster.status.report_file import ReportFile
from semisync.common.compat import tf
from tests.cluster.status import documents
from tests.wrap.one_process import PATIENCE, Job


def train(job, steps, write, **options):
    """Trains so many global steps of two batches with a StatusHook."""
    with job.graph.as_default():
        hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
        reporter = StatusHook(hook, write, **options)
        with tf.train.MonitoredTrainingSession(hooks=[hook, reporter]) as session:
            job.train(session, *[0.0] * 2 * steps)
            while options["every"] < 1 and not (
                write.said and write.said[-1]["batches_per_second"]
            ):
                job.train(session, 0.0, 0.0)
            return int(session.run(job.step))


class Written:
    """Keeps what it is given."""

    def __init__(self, failure=None):
        self.said, self._failure = [], failure

    def __call__(self, training):
        self.said.append(training)
        if self._failure:
            raise self._failure


def test_the_last_report_has_every_batch_and_step():
    job, written = Job(batches_per_step=2, paced=True), Written()
    train(job, 10, written, every=60.0)
    (last,) = written.said
    assert set(last) == set(documents.training())
    assert (last["global_step"], last["batches_per_step"]) == (10, 2)
    assert (last["fates"]["admitted"], last["staleness"]) == (20, {"0": 20})


def test_reports_cost_the_chief_no_run_of_the_session(monkeypatch):
    run, runs = tf.Session.run, []

    def counted(session, *args, **options):
        runs.append(threading.current_thread().name)
        return run(session, *args, **options)

    monkeypatch.setattr(tf.Session, "run", counted)
    train(Job(batches_per_step=2), 40, Written(), every=60.0)
    assert 40 <= runs.count("semisync-chief") < 60


@pytest.mark.long
def test_under_a_launcher_the_optimizers_own_hook_reports(monkeypatch):
    with contextlib.closing(ReportFile()) as file:
        for name, path in file.variables().items():
            monkeypatch.setenv(name, path)
        job = Job(batches_per_step=2, paced=True)
        with job.graph.as_default():
            hook = job.optimizer.make_session_run_hook(True, patience=PATIENCE)
            with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
                job.train(session, *[0.0] * 20)
        said = file.news()
        assert (said["global_step"], said["fates"]["admitted"]) == (10, 20)
        assert file.news() is None


def test_reports_come_while_it_trains_with_who_is_there_and_how_fast_it_goes():
    job, written = Job(batches_per_step=2, paced=True), Written()
    train(job, 1, written, every=0.05)
    assert len(written.said) >= 2
    assert max(len(one["workers"]) for one in written.said) == 1
    assert written.said[-1]["batches_per_second"] > 0
    assert written.said[-1]["global_step"] >= (written.said[0]["global_step"] or 0)


@pytest.mark.long
def test_a_report_that_nobody_takes_is_logged_once_and_the_training_goes_on(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("tensorflow"), "propagate", True)
    job, written = Job(batches_per_step=2, paced=True), Written(OSError("no connection"))
    with caplog.at_level(logging.WARNING):
        train(job, 1, written, every=0.05)
    assert len(written.said) >= 2
    assert caplog.text.count("the status could not be published: no connection") == 1
