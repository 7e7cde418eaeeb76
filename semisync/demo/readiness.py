"""Waiting for the chief without MonitoredTrainingSession's long look.

A worker that asks MonitoredTrainingSession for a session before the chief has initialised the
variables sleeps `recovery_wait_secs` = 30 s before it looks again. Looking by oneself first costs
nothing.
"""

import time

from semisync.compat import tf
from semisync.errors import SemisyncError


def wait_until_initialised(target, timeout=120.0):
    """Returns once every global variable of the default graph is initialised on the PS.

    Args:
      target: of the session, e.g. `server.target`.
      timeout: seconds.

    Raises:
      SemisyncError: the variables were not initialised in time.
    """
    missing = tf.report_uninitialized_variables(tf.global_variables())
    deadline = time.monotonic() + timeout
    with tf.Session(target) as session:
        while session.run(missing).size:
            if time.monotonic() > deadline:
                raise SemisyncError(
                    "the chief did not initialise the variables in {:.0f} s".format(timeout)
                )
            time.sleep(0.05)
