"""What a worker does that finds its chief gone, under MonitoredTrainingSession."""

import time
import types

import pytest

from semisync.common.compat import tf
from semisync.transport.job_state import ended_at
from semisync.worker import watchdog
from semisync.worker.watchdog import Watchdog, pings

PATIENCE = 1e6  # it waits no longer than needed


class WatchOnce(tf.train.SessionRunHook):
    """Watches a chief that has ended; a second session finds no other."""

    def __init__(self):
        self._pings, self._heartbeat = pings([""]), tf.constant(ended_at(epoch=7))
        self.sessions = 0

    def after_create_session(self, session, coord):
        self.sessions += 1
        if self.sessions == 1:
            Watchdog(self._heartbeat, self._pings, session, coord, PATIENCE)

    def before_run(self, run_context):
        if self.sessions == 2:
            raise tf.errors.OutOfRangeError(None, None, "the training is over")


@pytest.mark.long
def test_a_worker_that_slept_through_its_chiefs_end_ends_normally():
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        ticket = tf.FIFOQueue(1, [tf.int64], [[]]).dequeue()  # never comes
        hook = WatchOnce()
        with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
            session.run(ticket)
    assert hook.sessions == 2


def test_a_worker_that_was_frozen_for_longer_than_its_patience_goes_on(monkeypatch):
    beats, frozen = [], [0.0]
    clock = types.SimpleNamespace(monotonic=lambda: time.monotonic() + frozen[0])
    monkeypatch.setattr(watchdog, "time", clock)

    def beat():
        beats.append(None)
        if len(beats) == 2:
            frozen[0] = 3600.0
            time.sleep(2.4)  # and the first answer afterwards takes more than a round
        return tf.compat.as_bytes(str(len(beats)))

    with tf.Graph().as_default(), tf.Session() as session:
        heartbeat = tf.strings.to_number(tf.py_func(beat, [], tf.string), tf.int64)
        coordinator = tf.train.Coordinator()
        watched = Watchdog(heartbeat, pings([""]), session, coordinator, patience=4.0)
        while len(beats) < 5 and not coordinator.should_stop():
            time.sleep(0.05)
        watched.stop()
    assert len(beats) >= 5
    assert not coordinator.should_stop()
