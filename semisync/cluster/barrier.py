"""Starting together, so that measurements begin when every worker is at work."""

import time

from semisync.common.compat import tf
from semisync.common.errors import SemisyncError


class Barrier(tf.train.SessionRunHook):
    """No worker's session is ready before every worker's is; make it the first hook.

    Each worker has a queue on the first PS. A worker puts its task into every queue, then waits
    until its own queue holds a task of every worker.

    Args:
        name: of the barrier, which workers pass once.
        task: of this worker.
        parties: the number of workers.
        timeout: seconds to wait for the others.
    """

    def __init__(self, name, task, parties, timeout=120.0):
        self._timeout = timeout
        with tf.device("/job:ps/task:0"):
            arrivals = [
                tf.FIFOQueue(-1, [tf.int32], [[]], shared_name="{}/arrivals_{}".format(name, i))
                for i in range(parties)
            ]
            self._announce = tf.group(*[queue.enqueue([task]) for queue in arrivals])
            self._arrived = arrivals[task].size()
        self._parties = parties

    def after_create_session(self, session, coord):
        session.run(self._announce)
        sentence = "only {} of {} workers arrived within {:.0f} s"
        wait_for_workers(session, self._arrived, self._parties, self._timeout, sentence)


def wait_for_workers(session, count, parties, timeout, sentence):
    """Waits until the tensor `count` reaches `parties`.

    Args:
        timeout: seconds.
        sentence: takes the count, `parties` and `timeout`.

    Raises:
        SemisyncError: the sentence, after `timeout`.
    """
    deadline = time.monotonic() + timeout
    while session.run(count) < parties:
        if time.monotonic() > deadline:
            raise SemisyncError(sentence.format(session.run(count), parties, timeout))
        time.sleep(0.02)
