"""Checkpoints of whole global steps.

The chief applies in a thread of its own while MonitoredSession's CheckpointSaverHook saves in the
main thread. A save between two variables' updates would mix two global steps, so every saver waits
for the step lock, which the graph's chiefs hold while they apply. The hook's last save comes before
the last batches of the other workers are applied; once they are, the same saver saves once more.

No hook can see which saver a session uses (Scaffold may hold one of the user's own), so it is
`tf.train.Saver.save` itself that waits for the step lock of the session's graph, and that of each
class derived from it which has its own, as TFRA's.
"""

import functools
import numbers
import threading
from typing import Set

from semisync.common.compat import tf
from semisync.common.per_graph import PerGraph


def whole_steps(graph):
    """The `WholeStepSaver` of a graph; from now on saves in its sessions wait for its step lock."""
    classes = [tf.train.Saver]
    for kind in classes:
        if kind not in _waiting and "save" in vars(kind):
            kind.save = _locked(kind.save)
            _waiting.add(kind)
        classes += kind.__subclasses__()
    return _savers.of(graph)


class WholeStepSaver:
    """Has the savers of one graph hold the step lock while they save, and repeats the last save.

    Attributes:
        step_lock: every chief of the graph holds it while variables change.
    """

    def __init__(self):
        self.step_lock = threading.RLock()  # a class's own `save` may call that of its base
        self._last = None

    def save(self, save, saver, session, save_path, global_step, *args, **kwargs):
        """Saves between two global steps."""
        with self.step_lock:
            if isinstance(global_step, numbers.Integral):
                self._last = (saver, save_path, int(global_step))
            return save(saver, session, save_path, global_step, *args, **kwargs)

    def save_again(self, session):
        """Repeats the last save, unless the global step has not changed since."""
        if self._last is None:
            return
        saver, save_path, before = self._last
        step = int(session.run(tf.train.get_global_step(session.graph)))
        if step != before:
            saver.save(session, save_path, global_step=step)


_savers = PerGraph(WholeStepSaver)
_waiting: Set[type] = set()  # the classes whose `save` waits


def _locked(save):
    """`Saver.save` that waits for the chiefs of the session's graph."""

    @functools.wraps(save)
    def locked_save(saver, sess, save_path, global_step=None, *args, **kwargs):
        whole = _savers.of(sess.graph)
        return whole.save(save, saver, sess, save_path, global_step, *args, **kwargs)

    return locked_save
