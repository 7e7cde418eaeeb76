"""Checkpoints of whole global steps.

The chief applies in a thread of its own while MonitoredSession's CheckpointSaverHook saves in the
main one. A save between two variables' updates would mix two global steps, so every saver waits for
the lock that the chief holds while it applies. The hook's last save comes before the last batches
of the other workers are applied; once they are, the same saver saves once more.

No hook can see which saver a session uses (Scaffold may carry one of the user's own), so it is
`tf.train.Saver.save` itself that waits, in sessions whose graph has a chief and in no other.
"""

import functools
import numbers
import weakref

from semisync.compat import tf

_guards: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()  # graph -> SteadySaver


class SteadySaver:
    """Makes the savers of one graph hold `quiet` while they save, and can repeat the last save.

    Args:
      quiet: the lock that the chief holds while variables change.
    """

    def __init__(self, quiet):
        self._quiet = quiet
        self._last = None

    def steady(self, graph):
        """From now on, saves in sessions of `graph` wait for the lock."""
        _guards[graph] = self
        if not hasattr(tf.train.Saver.save, "__wrapped__"):
            tf.train.Saver.save = _guarded(tf.train.Saver.save)

    def save(self, save, saver, session, save_path, global_step, *args, **kwargs):
        """Saves between two global steps."""
        with self._quiet:
            if isinstance(global_step, numbers.Integral):
                self._last = (saver, save_path, int(global_step))
            return save(saver, session, save_path, global_step, *args, **kwargs)

    def save_again(self, session, step):
        """Repeats the last save at global step `step`, unless that is the one it was made at."""
        if self._last is not None and self._last[2] != step:
            saver, save_path, _ = self._last
            saver.save(session, save_path, global_step=step)


def _guarded(save):
    """`Saver.save` that gives way to the graph's chief, where there is one."""

    @functools.wraps(save)
    def guarded_save(saver, sess, save_path, global_step=None, *args, **kwargs):
        guard = _guards.get(sess.graph)
        if guard is None:
            return save(saver, sess, save_path, global_step, *args, **kwargs)
        return guard.save(save, saver, sess, save_path, global_step, *args, **kwargs)

    return guarded_save
