"""Checkpoints of whole global steps.

The chief applies in a thread of its own while MonitoredSession's CheckpointSaverHook saves in the
main one. A save between two variables' updates would mix two global steps, so the saver waits for
the lock that the chief holds while it applies. The hook's last save comes before the last batches
of the other workers are applied; once they are, the same saver saves once more.
"""

from semisync.compat import tf


class SteadySaver:
    """Makes the graph's savers hold `quiet` while they save, and can repeat the last save.

    Args:
      quiet: the lock that the chief holds while variables change.
    """

    def __init__(self, quiet):
        self._quiet = quiet
        self._steadied = []
        self._last = None

    def steady(self):
        """Takes hold of every saver in the default graph's collection, once each."""
        for saver in tf.get_collection(tf.GraphKeys.SAVERS):
            if saver not in self._steadied:
                self._steadied.append(saver)
                saver.save = self._locked(saver, saver.save)

    def _locked(self, saver, save):
        def save_between_steps(session, save_path, global_step=None, *args, **kwargs):
            with self._quiet:
                self._last = (save, save_path, global_step)
                return save(session, save_path, global_step, *args, **kwargs)

        return save_between_steps

    def save_again(self, session, step):
        """Repeats the last save at global step `step`, unless that is the one it was made at."""
        if self._last is None:
            return
        save, save_path, saved_step = self._last
        if saved_step is not None and int(saved_step) != step:
            save(session, save_path, global_step=step)
