"""Starting together and ending apart: what a parameter-server job needs besides its training.

Starting: a worker that asks MonitoredTrainingSession for a session before the chief has initialised
the variables sleeps `recovery_wait_secs` = 30 s before it tries again. Polling first avoids that.

Ending: a session that sees every process of the cluster waits for each of them when it is closed,
including workers that have ended. With device filters it sees only the PS and its own process.
"""

import time

from semisync.common.compat import tf
from semisync.common.errors import SemisyncError


def worker_config(task):
    """A tf.ConfigProto for the session of worker `task`.

    It has device filters, and soft placement: ops without a GPU kernel run on the CPU.
    """
    filters = ["/job:ps", "/job:worker/task:{}".format(task)]
    return tf.ConfigProto(device_filters=filters, allow_soft_placement=True)


def wait_until_initialised(target, config, timeout=120.0):
    """Returns once every global variable of the default graph is initialised on the PS.

    Args:
      target, config: of the session, e.g. `server.target` and `worker_config(task)`.
      timeout: seconds.

    Raises:
      SemisyncError: the variables were not initialised in time.
    """
    missing = tf.report_uninitialized_variables(tf.global_variables())
    deadline = time.monotonic() + timeout
    with tf.Session(target, config=config) as session:
        while session.run(missing).size:
            if time.monotonic() > deadline:
                raise SemisyncError(
                    "the chief did not initialise the variables in {:.0f} s".format(timeout)
                )
            time.sleep(0.05)
