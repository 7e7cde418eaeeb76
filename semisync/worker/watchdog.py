"""The watch: nobody waits for ever for a process that is gone.

A thread of each process looks from time to time whether the chief's count of signs of life grows,
and has every parameter server answer. A look that takes longer than it should is waited for in
peace: the chief may be away for a while. When `patience` seconds have brought nothing new, the
thread says who does not answer and stops the session, which wakes whoever waits in it.

A chief that has ended is no error: it gave this process up, which was frozen, say. MonitoredSession
then makes a new session, in which the hook waits for another chief, and ends in peace without one.

A parameter server that is frozen, or that the network has cut off, is a case of its own: neither
`session.run` nor `session.close` comes back from it, whatever deadline it was given. So they are
called in threads of their own, and a process whose session cannot be closed ends itself.
"""

import os
import threading
import time

from semisync.common.compat import tf
from semisync.common.errors import SemisyncError
from semisync.transport.job_state import ENDED


def pings(devices):
    """{device: a tensor that is computed there anew each time}."""
    found = {}
    for device in sorted(set(devices)):
        with tf.device(device):
            found[device] = tf.timestamp()
    return found


class Question(threading.Thread):
    """A call in a thread of its own; it may never come back.

    Attributes:
      answer: what the function returned; None before.
      error: what it raised; None before.
    """

    def __init__(self, function):
        super().__init__(name="semisync-question", daemon=True)
        self._function = function
        self.answer = self.error = None
        self.start()

    def wait(self, seconds):
        """Waits so long at most; returns True while there is no answer."""
        self.join(seconds)
        return self.is_alive()

    def run(self):
        try:
            self.answer = self._function()
        except Exception as error:
            self.error = error


class Watch(threading.Thread):
    """Watches over the chief and the parameter servers until it is told to stop.

    Args:
      beats: function that returns the chief's count of signs of life; it may block or raise.
      pings: {device of a PS: tensor computed there}.
      session: a raw tf.Session.
      coordinator: of that session.
      patience: seconds.
    """

    LOOK_EVERY = 5.0  # seconds
    GRACE = 10.0  # seconds for a session to close

    def __init__(self, beats, pings, session, coordinator, patience):
        super().__init__(name="semisync-watch", daemon=True)
        self._beats = beats
        self._pings = pings
        self._session = session
        self._coordinator = coordinator
        self._patience = patience
        self._interval = min(self.LOOK_EVERY, patience / 4)
        self._done = threading.Event()
        self.start()

    def stop(self):
        """Ends the watch."""
        self._done.set()
        self.join()

    def run(self):
        last, since, look = None, time.monotonic(), None
        while not self._done.wait(self._interval):
            look = look if look and look.is_alive() else Question(self._look)
            look.wait(self._interval)
            if isinstance(look.error, RuntimeError):
                return  # the session is closed
            # Another error the main thread meets too, and deals with.
            if look.answer not in (None, last):
                last, since = look.answer, time.monotonic()
            elif time.monotonic() - since > self._patience and not self._done.is_set():
                self._give_up(last, time.monotonic() - since)
                return

    def _look(self):
        self._session.run(self._pings)
        return self._beats()

    def _silent(self):
        """The devices that do not answer, a list of their names."""
        asked = {d: Question(lambda t=t: self._session.run(t)) for d, t in self._pings.items()}
        deadline = time.monotonic() + self._interval
        return sorted(
            device
            for device, question in asked.items()
            if question.wait(max(0.0, deadline - time.monotonic()))
        )

    def _give_up(self, beats, seconds):
        error = self._reason(beats, seconds)
        # As sys.exc_info() gives it: an exception that was never raised the coordinator forgets.
        self._coordinator.request_stop((type(error), error, None))
        if Question(self._session.close).wait(self.GRACE):
            tf.logging.fatal("semisync: %s; this process ends, for its session does not", error)
            os._exit(1)

    def _reason(self, beats, seconds):
        """The error that stops the session, after so many seconds at the same count of beats."""
        silent = self._silent()
        if silent:
            return SemisyncError(
                "{} did not answer for {:.0f} s: start the job again".format(
                    " and ".join(silent), seconds
                )
            )
        if beats == ENDED:  # an AbortedError has MonitoredSession make a new session
            return tf.errors.AbortedError(
                None, None, "the chief has given this worker up, and ended without it"
            )
        return SemisyncError(
            "no sign of life from the chief, the process with "
            "make_session_run_hook(is_chief=True), for {:.0f} s: start it again, and then this "
            "worker".format(seconds)
        )
