"""Checkpoints of whole global steps.

The chief applies in a thread of its own while MonitoredSession's CheckpointSaverHook saves in the
main thread. A save between two variables' updates would mix two global steps, so every saver waits
for the step lock, which the graph's chiefs hold while they apply. One that waits for messages in
the same run is woken.

The last batches of the other workers are applied when the session is closed. The chief's hook is
the first to end (`semisync.worker.ending`), so that hooks save, report and compute at their end
with the variables of the last global step. A save that the job made after its last run, before the
session was closed, is repeated by the same call.

No hook can see which saver a session uses (Scaffold may hold one of the user's own), so
`tf.train.Saver.save` itself waits for the step lock of the session's graph, and so does the `save`
of each derived class that overrides it, such as TFRA's.
"""

import contextlib
import functools
import numbers
import threading
from typing import Any, Dict, List, NamedTuple, Set, Tuple

from semisync.common.compat import raw_ops, tf
from semisync.common.per_graph import PerGraph


def whole_steps(graph):
    """The `WholeSteps` of a graph; from now on saves in its sessions wait for its step lock."""
    classes = [tf.train.Saver]
    # The list grows meanwhile, so that subclasses of subclasses are met, too.
    for kind in classes:
        if kind not in _waiting and "save" in vars(kind):
            kind.save = _locked(kind.save)
            _waiting.add(kind)
        classes += kind.__subclasses__()
    return _of_graph.of(graph)


class Save(NamedTuple):
    """A call of `Saver.save`, and the global steps that it has saved, one per counter."""

    saver: Any
    save_path: str
    global_step: Any  # as it was given
    more: Tuple[Any, Any]  # further arguments
    steps: List[int]

    def again(self, session, steps):
        """Saves once more at other global steps, whose number replaces the earlier one."""
        given, (args, kwargs) = self.global_step, self.more
        # A number may be the step of then; a variable is read anew by `Saver.save` itself.
        if isinstance(given, numbers.Integral) and given in self.steps:
            given = steps[self.steps.index(int(given))]
        self.saver.save(session, self.save_path, given, *args, **kwargs)


class WholeSteps:
    """The step lock of one graph, which its savers hold while they save; repeats the last saves."""

    def __init__(self):
        self._lock = threading.RLock()  # a class's own `save` may call that of its base
        self._chiefs: List[Any] = []
        self._saves: List[Any] = []  # savers that hold the lock, or wait for it
        self._remembers = False
        self._steps: Dict[Any, Any] = {}  # by the op of a global step: its value, a tensor
        self._since_run: Dict[Any, Save] = {}  # by saver and path
        self._last: List[Save] = []  # at most one
        self.clocks: Dict[int, int] = {}  # of the chiefs by number, see `chief.thread`

    @contextlib.contextmanager
    def applied_by(self, chief):
        """A block in which a `Chief` applies global batches."""
        self._chiefs.append(chief)
        try:
            yield
        finally:
            self._chiefs.remove(chief)

    @contextlib.contextmanager
    def lock(self, every, meanwhile):
        """For a chief, while variables change; while it waits, it calls `meanwhile` periodically.

        Args:
            every: seconds.
            meanwhile: function without arguments.
        """
        while not self._lock.acquire(timeout=every):
            meanwhile()
        try:
            yield
        finally:
            self._lock.release()

    @property
    def chiefs(self):
        """The chiefs that apply global batches now, a list."""
        return list(self._chiefs)

    @property
    def wanted(self):
        """Whether a save or another chief may wait for the lock: its holder should not wait for
        anything."""
        return len(self._chiefs) > 1 or bool(self._saves)

    @contextlib.contextmanager
    def _saving(self, saver):
        self._saves.append(saver)  # first: a chief that is not woken has seen it
        try:
            if not self._lock.acquire(blocking=False):
                for chief in list(self._chiefs):
                    chief.wake()
                self._lock.acquire()
            try:
                yield
            finally:
                self._lock.release()
        finally:
            self._saves.remove(saver)

    def save(self, save, saver, session, save_path, global_step, *args, **kwargs):
        """Saves between two global steps."""
        with self._saving(saver):
            saved = save(saver, session, save_path, global_step, *args, **kwargs)
            if self._remembers:
                more = args, kwargs
                made = Save(saver, save_path, global_step, more, self._now(session))
                self._since_run[saver, save_path] = made
                self._last = [made]
            return saved

    def remember(self, step):
        """Records saves from now on, since the job trains.

        Args:
            step: the op of the variable that counts the global batches of a chief.
        """
        self._remembers = True
        if step not in self._steps:
            self._steps[step] = _value(step)  # now, before the graph is finalized

    def run_begins(self):
        """Forgets the saves of before a run."""
        self._since_run.clear()

    def save_last_again(self, session):
        """Repeats the last save, such as a periodic one, since nobody saves while the chief
        waits."""
        self._repeat(self._last, session)

    def save_again(self, session):
        """Repeats the saves since the last run began that are of an earlier global step."""
        self._repeat(list(self._since_run.values()), session)
        self._remembers = False

    def _repeat(self, saves, session):
        steps = self._now(session) if saves else []
        for made in saves:
            if made.steps != steps:
                made.again(session, steps)

    def _now(self, session):
        return [int(step) for step in session.run(list(self._steps.values()))]


def _value(variable):
    """The tensor with a variable's value, given its op."""
    (variable_or_handle,) = variable.outputs
    if variable_or_handle.dtype != tf.resource:
        return variable_or_handle
    with tf.control_dependencies(None), tf.device(variable.device):
        return raw_ops.ReadVariableOp(resource=variable_or_handle, dtype=variable.get_attr("dtype"))


_of_graph = PerGraph(WholeSteps)
_waiting: Set[type] = set()  # the classes whose `save` waits


def _locked(save):
    """`Saver.save` that waits for the chiefs of the session's graph."""

    @functools.wraps(save)
    def locked_save(saver, sess, save_path, global_step=None, *args, **kwargs):
        whole = _of_graph.of(sess.graph)
        return whole.save(save, saver, sess, save_path, global_step, *args, **kwargs)

    return locked_save
