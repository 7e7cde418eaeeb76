"""Starting together, so that what is measured is measured with everybody at work."""

import time

from semisync.common.compat import tf
from semisync.common.errors import SemisyncError


class Barrier(tf.train.SessionRunHook):
    """Nobody's session is ready before everybody's is; make it the first hook.

    Args:
      name: of the barrier; each is passed once.
      task: of this worker.
      parties: how many workers there are.
      timeout: seconds to wait for the others.
    """

    def __init__(self, name, task, parties, timeout=120.0):
        self._timeout = timeout
        with tf.device("/job:ps/task:0"):
            doors = [
                tf.FIFOQueue(-1, [tf.int32], [[]], shared_name="{}/door_{}".format(name, i))
                for i in range(parties)
            ]
            self._knock = tf.group(*[door.enqueue([task]) for door in doors])
            self._knocks = doors[task].size()
        self._parties = parties

    def after_create_session(self, session, coord):
        session.run(self._knock)
        deadline = time.monotonic() + self._timeout
        while session.run(self._knocks) < self._parties:
            if time.monotonic() > deadline:
                raise SemisyncError(
                    "only {} of {} workers came in {:.0f} s".format(
                        session.run(self._knocks), self._parties, self._timeout
                    )
                )
            time.sleep(0.02)
