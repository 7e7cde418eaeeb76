"""Settings proposed for a cluster: M, the staleness bound, and the number of parameter servers.

1. M, where none is given: the smallest power of 2, at most twice the number of workers, at which
   the mean staleness is at most `staleness` with ample parameter servers, which delay nothing.
2. Parameter servers: the fewest, by doubling and bisecting, with which semi-synchronous training
   keeps `PACE` of the pace that it has with ample ones, and that staleness.
3. The bound: the smallest that `KEPT` of the batches meet.

Each is simulated, so that the answer holds for the given times of batches, stragglers included.
"""

import functools
from typing import Any, NamedTuple, Optional

from semisync.common.errors import BadInput
from semisync.simulate.modes import Async, SemiSync
from semisync.simulate.simulation import Result, simulate
from semisync.staleness import Threshold

PACE = 0.98  # of the pace with ample parameter servers
KEPT = 0.999  # of the batches are within the bound
_MOST_SERVERS = 4096


class Advice(NamedTuple):
    """A proposal, and its simulated figures.

    Attributes:
        batches_per_step: M, proposed.
        bound: on the staleness, proposed.
        servers: number of parameter servers, proposed.
        result: of semi-synchronous training with it.
        asynchronous: of asynchronous training on the same cluster.

    Examples:
        >>> from semisync.simulate import Cluster, advise
        >>> advice = advise(Cluster(workers=4), staleness=2, batches_per_step=4, batches=100)
        >>> advice.servers
        1
    """

    batches_per_step: int
    bound: int
    servers: int
    result: Result
    asynchronous: Result


def advise(
    cluster: Any, staleness: float, batches_per_step: Optional[int], batches: int, seed: int = 0
) -> Advice:
    """Proposes settings.

    Args:
        cluster: a `Cluster`; its number of servers is the least that is proposed.
        staleness: the largest mean staleness that is wanted, in global steps.
        batches_per_step: M where it is given, such as by the global batch of a synchronous job.
        batches: how many each simulation applies.
        seed: of all draws.

    Returns:
        An `Advice`.

    Raises:
        BadInput: no M up to twice the number of workers has such a staleness.

    Examples:
        >>> from semisync.simulate import Cluster, advise
        >>> advice = advise(Cluster(workers=4), staleness=2, batches_per_step=None, batches=100)
        >>> advice.batches_per_step
        2
    """
    given = batches_per_step is not None
    sizes = _powers_of_2(2 * cluster.workers) if batches_per_step is None else [batches_per_step]
    for size in sizes:
        count = max(batches, 20 * size)  # 20 global steps or more

        def run(servers, mode, count=count):
            return simulate(cluster._replace(servers=servers), mode, count, seed)

        ample = run(_MOST_SERVERS, SemiSync(size))
        if not given and ample.mean_staleness > staleness:
            continue
        most = float("inf") if given else staleness
        servers = _fewest(cluster.servers, ample, most, functools.partial(run, mode=SemiSync(size)))
        bound = max(1, run(servers, SemiSync(size)).staleness_quantile(KEPT))
        result = run(servers, SemiSync(size, Threshold(bound)))
        return Advice(size, bound, servers, result, run(servers, Async()))
    raise BadInput(
        "with {} workers even M = {} has a mean staleness of {:.2g}, more than {:g}: fewer tickets "
        "in flight or the mode sync lower it".format(
            cluster.workers, size, ample.mean_staleness, staleness
        )
    )


def _powers_of_2(most):
    return [1 << n for n in range(most.bit_length())]


def _fewest(least, ample, most_staleness, run):
    """The fewest servers, from `least` on, with which the job does nearly as well as `ample`."""

    def enough(servers):
        result = run(servers)
        pace = result.batches_per_second >= PACE * ample.batches_per_second
        return pace and result.mean_staleness <= most_staleness

    high = least
    while not enough(high) and high < _MOST_SERVERS:
        high *= 2
    low = max(least - 1, high // 2)  # too few, or none
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
