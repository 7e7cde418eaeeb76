"""Sharing one sequence of batches among workers, and ending together.

    work   int64 []   the numbers of the batches in order; then it is closed
    left   int32 []   the workers that have ended

1. The chief fills `work`, once, and closes it. A worker takes the next number when it is free, so
   that a slow worker trains fewer batches, and every batch is trained once, nearly in the given
   order. A session that is made again resumes the list.
2. A worker that finds it empty stops. The chief, last, waits until all have left, and saves.
"""

from semisync.cluster.barrier import wait_for_workers
from semisync.common.compat import tf


class WorkList(tf.train.SessionRunHook):
    """The queue of batch numbers; make it the first hook: it must be filled before the start.

    Args:
        batches: how many there are.
        is_chief: True in one process.
    """

    def __init__(self, batches, is_chief):
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name="work")
            with tf.control_dependencies([queue.enqueue_many([tf.range(batches, dtype=tf.int64)])]):
                self._fill = queue.close()
            self.next = queue.dequeue()
        self._to_fill = is_chief

    def after_create_session(self, session, coord):
        if self._to_fill:
            session.run(self._fill)
            self._to_fill = False


class Ending(tf.train.SessionRunHook):
    """Make it the last hook: on the chief, waits for the other workers, then saves the model.

    Args:
        path: of the checkpoint to write.
        task: of this worker; 0 is the chief.
        workers: how many must have left.
        variables: those to save; None: all.
        timeout: seconds to wait for them.
    """

    def __init__(self, path, task, workers, variables, timeout=300.0):
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(-1, [tf.int32], [[]], shared_name="left")
            self._leave = queue.enqueue([task])
            self._gone = queue.size()
        self._path, self._task, self._workers, self._timeout = path, task, workers, timeout
        self._saver = tf.train.Saver(variables, sharded=True)

    def end(self, session):
        session.run(self._leave)
        if self._task:
            return
        sentence = "only {} of {} workers ended within {:.0f} s of the chief"
        wait_for_workers(session, self._gone, self._workers, self._timeout, sentence)
        self._saver.save(session, self._path)
