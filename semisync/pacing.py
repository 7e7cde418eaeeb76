"""When a job is paced: never, always, or at some of its global steps."""

from typing import NamedTuple, Optional

from semisync.common.errors import UsageError


class PacedSteps(NamedTuple):
    """Paced in the first `first` global steps, and again from the global step `since` on.

    For `GlobalBatchOptimizer(paced=...)`: the running job changes between exact global batches and
    semi-synchronous training, at steps that the chief counts, so that no process is started again.
    A step or three after the second change may still hold batches that were under way.

    A worker holds its ticket while it waits for its next rows, which `paced=True` lets others have.

        semisync.PacedSteps(first=1000, since=95000)
    """

    first: int = 0
    since: Optional[int] = None

    def at(self, step):
        """Whether the global step `step` is paced."""
        return step < self.first or (self.since is not None and step >= self.since)


def checked(paced):
    """`paced`: True, False or `PacedSteps`, which an imported graph has as a dict.

    Raises:
      UsageError: it is something else.
    """
    steps = PacedSteps(**paced) if isinstance(paced, dict) else paced
    if not isinstance(steps, PacedSteps):
        return bool(paced)
    numbers = [steps.first, 0 if steps.since is None else steps.since]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in numbers):
        raise UsageError(
            "paced=PacedSteps(first, since) takes global steps, whole numbers of 0 or more, not "
            "{!r} and {!r}".format(*steps)
        )
    return steps


def paced_at(paced, step):
    """Whether a job with the option `paced` is paced at a global step."""
    return paced.at(step) if isinstance(paced, PacedSteps) else paced
