"""The watchdog: no process waits for ever for a dead one.

A thread of each process gives the chief a sign of life from time to time, so that a worker that
waits for input, or takes long to compute a batch, is not taken for a dead one: its batch
counts when it comes, by its staleness. With each sign the thread probes whether the chief's
heartbeat grows, and whether every parameter server answers. A slow probe is not an error: the chief
may be away for a while. After `patience` seconds without news, the thread reports which process
does not answer and stops the session, which wakes every thread that waits in it. Time in which this
process itself did not run, frozen or starved, does not count as the others' silence: a round counts
for two intervals at most.

A chief that ended while this process trained has given it up, for example because it was frozen.
This is not an error: MonitoredSession makes a new session, and its hook ends it normally.

A parameter server that is frozen, or cut off from the network, needs more: neither `session.run`
nor `session.close` returns from it, whatever its deadline. So they are called in threads of their
own, and a process whose session cannot be closed ends itself.
"""

import os
import threading
import time

from semisync.common.background_call import BackgroundCall
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.transport.job_state import has_ended

LEAST = 4.0  # seconds of patience: four times the longest trip of a sign of life, either way


def pings(devices):
    """{device: a tensor that is computed there every time}."""
    tensors = {}
    for device in sorted(set(devices)):
        with tf.device(device):
            tensors[device] = tf.timestamp()
    return tensors


class Watchdog(threading.Thread):
    """Watches the chief and the parameter servers until stopped.

    Args:
        heartbeat: the chief's heartbeat, a tensor.
        pings: {device of a PS: tensor computed there}.
        session: a raw tf.Session.
        coordinator: of that session.
        patience: seconds, LEAST or more.
        alive: the op that gives the sign of life.
    """

    PROBE_EVERY = 5.0  # seconds
    GRACE = 10.0  # seconds for a session to close

    def __init__(self, heartbeat, pings, session, coordinator, patience, alive=()):
        super().__init__(name="semisync-watchdog", daemon=True)
        self._heartbeat = heartbeat
        self._pings = pings
        self._alive = alive
        self._session = session
        self._coordinator = coordinator
        self._patience = patience
        self._interval = min(self.PROBE_EVERY, patience / 4)
        self._leaving = threading.Event()
        self._done = threading.Event()
        self.start()

    def leave(self):
        """From now on the chief may end."""
        self._leaving.set()

    def stop(self):
        """Ends the thread."""
        self._done.set()
        self.join()

    def run(self):
        last, silent, probe = None, 0.0, None
        looked = time.monotonic()
        while not self._done.wait(self._interval):
            probe = probe if probe and probe.is_alive() else BackgroundCall(self._probe)
            probe.wait(self._interval)
            if isinstance(probe.error, RuntimeError):
                return  # the session is closed
            # The main thread meets any other error, too, and handles it.
            now = time.monotonic()
            # Time that the machine slept is no silence: at most two intervals count per look.
            silent, looked = silent + min(now - looked, 2 * self._interval), now
            if probe.result not in (None, last):
                last, silent = probe.result, 0.0
            left_behind = has_ended(last) and not self._leaving.is_set()
            if (left_behind or silent > self._patience) and not self._done.is_set():
                self._give_up(last, silent)
                return

    def _probe(self):
        _, heartbeat, _ = self._session.run([self._pings, self._heartbeat, self._alive])
        return int(heartbeat)

    def _silent(self):
        """The devices that do not answer, a list of their names."""
        calls = {
            device: BackgroundCall(lambda ping=ping: self._session.run(ping))
            for device, ping in self._pings.items()
        }
        deadline = time.monotonic() + self._interval
        return sorted(
            device
            for device, call in calls.items()
            if call.wait(max(0.0, deadline - time.monotonic()))
        )

    def _give_up(self, heartbeat, seconds):
        error = self._reason(heartbeat, seconds)
        # A tuple, as from sys.exc_info(): in place of an exception that is not being handled the
        # coordinator raises a ValueError about it.
        self._coordinator.request_stop((type(error), error, None))
        if BackgroundCall(self._session.close).wait(self.GRACE):
            tf.logging.fatal("semisync: %s; this process ends, since its session does not", error)
            os._exit(1)  # sys.exit would end this thread alone

    def _reason(self, heartbeat, seconds):
        """The error that stops the session, after so many seconds at the same heartbeat."""
        silent = self._silent()
        if silent:
            # A silent server explains a silent chief: it is named first.
            return SemisyncError(
                "{} did not answer for {:.0f} s: start the job again".format(
                    " and ".join(silent), seconds
                )
            )
        if has_ended(heartbeat):  # an AbortedError has MonitoredSession make a new session
            return tf.errors.AbortedError(
                None, None, "the chief has given this worker up, and ended without it"
            )
        return SemisyncError(
            "no sign of life from the chief, the process with "
            "make_session_run_hook(is_chief=True), for {:.0f} s: start it again, and then this "
            "worker".format(seconds)
        )
