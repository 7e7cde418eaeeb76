"""The order in which the hooks of a session end: those of this package first.

The chief's hook waits for the other workers and applies their last batches. Other hooks should save
or compute the last global step at their end, so they end after it. A hook cannot choose the order,
and MonitoredTrainingSession adds hooks of its own, so they are ordered when the session closes.
"""

import functools
from typing import Set

from semisync.common.compat import tf

_CLOSE = "_close_internal"  # in 1.15 and in every 2.x; called by `close` and at the end of a `with`


_arranged: Set[type] = set()  # classes of sessions that end hooks in this order


class EndsFirst(tf.train.SessionRunHook):
    """A hook whose `end` comes before those of others, and `after_all` after them."""

    def after_all(self, session):
        """Called with the session that `end` is called with."""


class _AfterAll(tf.train.SessionRunHook):
    def __init__(self, hooks):
        self._hooks = hooks

    def end(self, session):
        for hook in self._hooks:
            hook.after_all(session)


def arrange():
    """From now on sessions end the hooks that are `EndsFirst` before others."""
    base = next(kind for kind in tf.train.MonitoredSession.__mro__ if _CLOSE in vars(kind))
    if base not in _arranged:
        _arranged.add(base)
        setattr(base, _CLOSE, _in_order(getattr(base, _CLOSE)))


def _in_order(close):
    @functools.wraps(close)
    def close_in_order(session, *args, **kwargs):
        first = [hook for hook in session._hooks if isinstance(hook, EndsFirst)]
        others = [hook for hook in session._hooks if hook not in first]
        if first:
            session._hooks = [*first, *others, _AfterAll(first)]
        return close(session, *args, **kwargs)

    return close_in_order
