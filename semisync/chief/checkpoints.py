"""Checkpoints of whole global steps.

The chief applies in a thread of its own while MonitoredSession's CheckpointSaverHook saves in the
main one. A save between two variables' updates would mix two global steps, so every saver waits for
the lock that the graph's chiefs hold while they apply. The hook's last save comes before the last
batches of the other workers are applied; once they are, the same saver saves once more.

No hook can see which saver a session uses (Scaffold may carry one of the user's own), so it is
`tf.train.Saver.save` itself that waits, for a lock that the chiefs of the session's graph hold.
"""

import functools
import numbers
import threading

from semisync.common.compat import tf
from semisync.common.per_graph import PerGraph


def steady(graph):
    """The `SteadySaver` of a graph; from now on saves in its sessions wait for `quiet`."""
    if not hasattr(tf.train.Saver.save, "__wrapped__"):
        tf.train.Saver.save = _guarded(tf.train.Saver.save)
    return _guards.of(graph)


class SteadySaver:
    """Makes the savers of one graph hold `quiet` while they save, and can repeat the last save.

    Attributes:
      quiet: the lock that every chief of the graph holds while variables change.
    """

    def __init__(self):
        self.quiet = threading.Lock()
        self._last = None

    def save(self, save, saver, session, save_path, global_step, *args, **kwargs):
        """Saves between two global steps."""
        with self.quiet:
            if isinstance(global_step, numbers.Integral):
                self._last = (saver, save_path, int(global_step))
            return save(saver, session, save_path, global_step, *args, **kwargs)

    def save_again(self, session):
        """Repeats the last save, unless the global step is still the one that it was made at."""
        if self._last is None:
            return
        saver, save_path, before = self._last
        step = int(session.run(tf.train.get_global_step(session.graph)))
        if step != before:
            saver.save(session, save_path, global_step=step)


_guards = PerGraph(SteadySaver)


def _guarded(save):
    """`Saver.save` that gives way to the chiefs of the session's graph."""

    @functools.wraps(save)
    def guarded_save(saver, sess, save_path, global_step=None, *args, **kwargs):
        guard = _guards.of(sess.graph)
        return guard.save(save, saver, sess, save_path, global_step, *args, **kwargs)

    return guarded_save
