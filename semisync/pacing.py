"""How tickets are rationed: M per global step, always or at some steps, and how many ahead of them.

Paced, the chief issues M tickets at each global step, so that nothing is late. With `ahead` tickets
more at the beginning, M + ahead are out or wait to be applied at any time, and a global step passes
over `ahead` of them. So the batches of a job, M per step, are late by ahead / M steps on average
(Little's law), whatever the workers and the machines do, and by less where tickets lie undrawn.
"""

import numbers
from typing import NamedTuple, Optional

from semisync.common.errors import UsageError

MOST = 100  # global steps; all tickets of so many are issued at once, and no job is as late


class PacedSteps(NamedTuple):
    """Paced in the first `first` global steps, and again from the global step `since` on.

    For `GlobalBatchOptimizer(paced=...)`: the running job changes between exact global batches and
    semi-synchronous training, at steps that the chief counts, so that no process is started again.
    A step or three after the second change may still hold batches that were under way.

    A worker holds its ticket while it waits for its next rows, which `paced=True` lets others have.

    Args:
        first: global steps.
        since: a global step; None: the job stays semi-synchronous.

    Examples:
        >>> paced = semisync.PacedSteps(first=1000, since=95000)
        >>> opt = tf.train.AdagradOptimizer(0.05)
        >>> opt = semisync.GlobalBatchOptimizer(opt, batches_per_step=32, paced=paced)
        >>> paced.at(999), paced.at(1000), paced.at(95000)
        (True, False, True)
    """

    first: int = 0
    since: Optional[int] = None

    def at(self, step):
        """Whether the global step `step` is paced.

        Args:
            step: a global step.

        Returns:
            A bool.
        """
        return step < self.first or (self.since is not None and step >= self.since)


class MeanStaleness(NamedTuple):
    """As many tickets as keep the mean staleness at `most` or below; see `semisync.pacing`.

    For `GlobalBatchOptimizer(in_flight=...)`. A worker without a ticket waits for the next step.

    Args:
        most: the largest mean staleness, in global steps, greater than 0 and up to 100; it is
            rounded down to whole batches, 1 / M each.

    Examples:
        >>> bound = semisync.MeanStaleness(0.5)
        >>> opt = tf.train.AdagradOptimizer(0.05)
        >>> opt = semisync.GlobalBatchOptimizer(opt, batches_per_step=32, in_flight=bound)
        >>> bound.ahead(32)  # 32 + 16 tickets are out or wait to be applied
        16
    """

    most: float = 1.0

    def ahead(self, batches_per_step):
        """How many tickets more than M there are.

        Args:
            batches_per_step: M.

        Returns:
            An int.
        """
        return int(self.most * batches_per_step + 1e-9)  # 0.29 x 100 is 28.999...


def checked(paced):
    """Checks `paced`: True, False, `PacedSteps` or `MeanStaleness`, a dict in an imported graph.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(paced, dict):
        paced = (MeanStaleness if "most" in paced else PacedSteps)(**paced)
    if isinstance(paced, MeanStaleness):
        return _checked_mean(paced)
    return _checked_steps(paced) if isinstance(paced, PacedSteps) else bool(paced)


def _checked_steps(steps):
    given = [steps.first, 0 if steps.since is None else steps.since]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in given):
        raise UsageError(
            "paced=PacedSteps(first, since) takes global steps, whole numbers of 0 or more, not "
            "{!r} and {!r}".format(*steps)
        )
    return steps


def _checked_mean(bound):
    valid = isinstance(bound.most, numbers.Real) and not isinstance(bound.most, bool)
    if not valid or not 0 < bound.most <= MOST:
        raise UsageError(
            "in_flight=MeanStaleness(most) takes a number of global steps greater than 0 and up to "
            "{}, not {!r}; paced=True has a staleness of 0".format(MOST, bound.most)
        )
    return MeanStaleness(float(bound.most))


def by_staleness(in_flight):
    """The `MeanStaleness` that the option `in_flight` asks for, or None where it is a number."""
    if isinstance(in_flight, str) and in_flight == "auto":
        return MeanStaleness()
    return in_flight if isinstance(in_flight, MeanStaleness) else None


def paced_at(paced, step):
    """Whether a job with the option `paced` is paced at a global step."""
    return paced.at(step) if isinstance(paced, PacedSteps) else bool(paced)


def ahead(paced, batches_per_step):
    """How many tickets more than M are out or wait to be applied while the job is paced."""
    return paced.ahead(batches_per_step) if isinstance(paced, MeanStaleness) else 0


def leaves_tickets(paced):
    """Whether a worker leaves the tickets that it has no batch for to the others."""
    return paced is True or isinstance(paced, MeanStaleness)
