"""Sharing one sequence of batches among workers, and ending together.

    work   int64 []   the numbers of the batches in order, then END once per worker
    left   int32 []   the workers that have ended

1. The chief fills `work`. A worker takes the next number when it is free, so that a slow worker
   trains fewer batches, and every batch is trained once, nearly in the given order.
2. A worker that takes END stops. The chief, last, waits until all have left, and saves.
"""

from semisync.cluster.barrier import wait_for_workers
from semisync.common.compat import tf

END = -1


class WorkList(tf.train.SessionRunHook):
    """The queue of batch numbers; make it the first hook: it must be filled before the start.

    Args:
        batches: how many there are.
        workers: how many share them.
        is_chief: True in one process.
    """

    def __init__(self, batches, workers, is_chief):
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(-1, [tf.int64], [[]], shared_name="work")
            numbers = tf.concat([tf.range(batches), [END] * workers], 0)
            self._fill = queue.enqueue_many([tf.cast(numbers, tf.int64)])
            self.next = queue.dequeue()
        self._is_chief = is_chief

    def after_create_session(self, session, coord):
        if self._is_chief:
            session.run(self._fill)


class Ending(tf.train.SessionRunHook):
    """Make it the last hook: on the chief, waits for the other workers, then saves the model.

    Args:
        path: of the checkpoint to write.
        task: of this worker; 0 is the chief.
        workers: how many must have left.
        variables: to save.
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
