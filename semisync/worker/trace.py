"""How long the batches of a worker take, for `semisync simulate --trace`."""

import time
from typing import Any

from semisync import arguments
from semisync.common.compat import tf

_HEADER = "pause,run\n"
_NOT_COUNTED = 3  # runs in which TensorFlow still optimises the graph


class TraceHook(tf.train.SessionRunHook):
    """Writes a CSV file with a line for each batch of this worker; for every mode of training.

    A trace for the simulator is best written in asynchronous training, where no worker waits for
    others. The first batches are left out.

    Args:
        path: of the file, one for each worker, such as "traces/worker-3.csv"; its folder is made.

    Examples:
        >>> step = tf.train.get_or_create_global_step()
        >>> weight = tf.get_variable("weight", initializer=1.0)
        >>> train_op = tf.train.GradientDescentOptimizer(0.1).minimize(weight**2, global_step=step)
        >>> hooks = [semisync.TraceHook("traces/worker-0.csv")]
        >>> with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        ...     for _ in range(20):
        ...         _ = session.run(train_op)
        >>> open("traces/worker-0.csv").readline().strip()
        'pause,run'
    """

    def __init__(self, path):
        self._path = arguments.writable(path, "the trace")
        self._file: Any = None
        self._began = self._ended = 0.0

    def begin(self):
        self._file = open(self._path, "w")  # noqa: SIM115 (closed by `end`)
        self._file.write(_HEADER)
        self._runs = 0

    def before_run(self, run_context):
        self._began = time.monotonic()

    def after_run(self, run_context, run_values):
        ended = time.monotonic()
        self._runs += 1
        if self._runs > _NOT_COUNTED:
            pause = self._began - self._ended
            self._file.write("{:.6f},{:.6f}\n".format(pause, ended - self._began))
        self._ended = ended

    def end(self, session):
        self._file.close()
