"""Starting together and ending apart: the needs of a parameter-server job besides its training.

Starting: a worker that asks MonitoredTrainingSession for a session before the chief has initialised
the variables sleeps `recovery_wait_secs` = 30 s before it tries again. Polling first avoids that.

Ending: a session that sees every process of the cluster waits for each of them when it is closed,
including workers that have ended. With device filters it sees only the PS and its own process.
"""

import time

from semisync.common.background_call import BackgroundCall
from semisync.common.compat import tf
from semisync.common.errors import SemisyncError

GRACE = 10.0  # seconds for the last look


def worker_config(task, job="worker"):
    """The configuration of a process's session.

    It has device filters, and soft placement: ops without a GPU kernel run on the CPU.

    Args:
        task: the process's number in its job, an int.
        job: the name of the job, such as "chief" where the chief is one of its own.

    Returns:
        A tf.ConfigProto.

    Examples:
        >>> list(semisync.worker_config(3).device_filters)
        ['/job:ps', '/job:worker/task:3']
    """
    filters = ["/job:ps", "/job:{}/task:{}".format(job, task)]
    return tf.ConfigProto(device_filters=filters, allow_soft_placement=True)


def wait_until_initialised(target, config, timeout=120.0):
    """Waits until every global variable of the default graph is initialised on the PS.

    Args:
        target, config: of the session, e.g. `server.target` and `worker_config(task)`.
        timeout: seconds.

    Raises:
        SemisyncError: the variables were not initialised in time, or a PS did not answer.

    Examples:
        In every worker but the chief, before it asks for its session:

            if not is_chief:
                semisync.wait_until_initialised(server.target, config)
    """
    variables = tf.global_variables()
    missing = tf.report_uninitialized_variables(variables)
    graph, deadline = tf.get_default_graph(), time.monotonic() + timeout

    def look():
        with tf.Session(target, graph, config) as session:
            names = session.run(missing)
            while names.size and time.monotonic() < deadline:
                time.sleep(0.05)
                names = session.run(missing)
            return names

    call = BackgroundCall(look)
    if call.wait(timeout + GRACE):
        raise SemisyncError(
            "no answer from the parameter servers in {:.0f} s: are they all running, at the "
            "addresses that this process was given?".format(timeout)
        )
    if call.error:
        raise call.error
    if call.result.size:
        raise SemisyncError(
            "the chief did not initialise the variables in {:.0f} s: {} of {} are missing, such as "
            "{}".format(timeout, call.result.size, len(variables), call.result[0].decode())
        )
