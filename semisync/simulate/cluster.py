"""The simulated cluster, the costs of its steps, and the way of a batch through it.

1. A worker pauses, then asks the parameter servers for parameters (`pull`).
2. It computes the gradients (`Times.demand`).
3. It sends them (`push`).

The conditions before 1 and the steps after 3 are the mode's. A message takes `latency` each
way. The servers are alike and share every demand evenly, so one of them stands for all, with its
share of the demand; where every process shares one machine, all demands are that machine's.
"""

from typing import NamedTuple, Optional

from semisync.simulate.events import Lock, Processor
from semisync.simulate.limits import whole, within
from semisync.simulate.times import Times, WorkerTimes, check_times


class Costs(NamedTuple):
    """Processor seconds beside the workers' own demand, and the demands of a message.

    Attributes:
        pull: on all parameter servers together, per batch.
        push: the same.
        apply: on all parameter servers together, to apply a global batch, per batch of it (modes
            that aggregate).
        apply_step: the same per global step.
        chief: in the chief's process, to apply a global batch, per batch of it.
        chief_step: the same per global step.
        worker: in a worker's process per batch, besides its demand (modes that aggregate).
        background: the share of every demand that nobody waits for, such as what other threads of
            the process do; from 0 to less than 1.
        accumulators: how many variables share a push evenly: each adds one gradient at a time
            (SyncReplicasOptimizer; a large table counts as the only one).
        latency: seconds of a message, one way.
        payload: bytes of a batch's gradients, for the memory of the parameter servers.

    Examples:
        >>> from semisync.simulate import Cluster, Costs
        >>> cluster = Cluster(workers=400, costs=Costs(pull=0.002, push=0.001))
    """

    pull: float = 0.0005
    push: float = 0.0005
    apply: float = 0.0005
    apply_step: float = 0.001
    chief: float = 0.0001
    chief_step: float = 0.001
    worker: float = 0.0005
    background: float = 0.0
    accumulators: int = 1
    latency: float = 0.0005
    payload: int = 1000000


class Cluster(NamedTuple):
    """A cluster to simulate.

    Attributes:
        workers: their number.
        servers: number of parameter servers.
        times: how long the workers' batches take.
        costs: of everything else.
        cores: of each parameter server.
        shared_cores: the cores of the one machine that all processes share; None: each worker, and
            the chief, has a machine of its own.

    Examples:
        >>> from semisync.simulate import Cluster, Times
        >>> cluster = Cluster(workers=400, servers=8, times=Times(demand=0.1, spread=0.3))
    """

    workers: int
    servers: int = 1
    times: Times = Times()
    costs: Costs = Costs()
    cores: int = 4
    shared_cores: Optional[int] = None


def check_cluster(cluster):
    """Raises UsageError unless the numbers make a cluster."""
    whole("the number of workers", cluster.workers, 1)
    whole("the number of parameter servers", cluster.servers, 1)
    whole("the number of a parameter server's cores", cluster.cores, 1)
    if cluster.shared_cores is not None:
        whole("the number of shared cores", cluster.shared_cores, 1)
    costs = cluster.costs
    whole("the payload of a batch in bytes", costs.payload, 0)
    whole("the number of accumulators", costs.accumulators, 1)
    within("the background's share of a demand", costs.background, 0, 0.99)
    for name in ("pull", "push", "apply", "apply_step", "chief", "chief_step", "worker", "latency"):
        within("the cost {} in seconds".format(name), getattr(costs, name), 0)
    check_times(cluster.times, cluster.workers)


class Worker:
    """A worker in a simulation.

    Attributes:
        number: from 0.
        times: its `WorkerTimes`.
        begun: since when it waits for others.
        version: updates of the parameters that its batch has seen.
        batches: how many it has sent.
        ticket, token, waited, due: of `semisync.worker.state`; token also of SyncReplicasOptimizer.
        untold: kind, ticket, token and waited of a batch not yet reported to the chief.
    """

    __slots__ = (
        *("number", "times", "begun", "version", "batches"),
        *("ticket", "token", "waited", "due", "untold"),
    )

    def __init__(self, number, times):
        self.number, self.times = number, times
        self.begun = 0.0
        self.version = 0
        self.batches = 0
        self.ticket = self.token = self.waited = 0
        self.untold = None
        self.due = float("inf")


class Machines:
    """The processors of a cluster."""

    def __init__(self, cluster, clock):
        shared = cluster.shared_cores
        self._clock, self._costs = clock, cluster.costs
        one = None if shared is None else Processor(clock, shared)
        self._workers = one or Processor(clock, float("inf"))
        self._server = one or Processor(clock, cluster.cores)
        self._share = 1.0 if one else 1.0 / cluster.servers
        self._cores = shared or cluster.cores
        self._accumulators = Lock(self._server.work, self._costs.accumulators)

    def on_worker(self, seconds, call, *arguments):
        """A demand of a worker's process, or the chief's."""
        self._work(self._workers, seconds, call, arguments)

    def on_servers(self, seconds, call, *arguments):
        """A request to every parameter server; `seconds` of all of them together."""
        self._clock.after(self._costs.latency, self._serve, seconds, call, arguments)

    def into_accumulators(self, seconds, call, *arguments):
        """The same, for a variable to which one gradient at a time is added."""
        self._clock.after(self._costs.latency, self._add, seconds, call, arguments)

    def _add(self, seconds, call, arguments):
        self._accumulators.work(self._share * seconds, self._answer, call, arguments)

    def _serve(self, seconds, call, arguments):
        self._work(self._server, self._share * seconds, self._answer, (call, arguments))

    def _answer(self, call, arguments):
        self._clock.after(self._costs.latency, call, *arguments)

    def _work(self, processor, seconds, call, arguments):
        beside = self._costs.background * seconds
        processor.work(seconds - beside, call, *arguments)
        if beside:
            processor.work(beside, _nothing)

    def server_load(self):
        """The share of the parameter servers' cores that was busy."""
        return self._server.busy / (self._cores * self._clock.now)


def _nothing():
    """The end of a demand that nobody waits for."""


def make_workers(cluster, seed):
    """The cluster's workers."""
    return [
        Worker(number, WorkerTimes(cluster.times, number, cluster.workers, seed))
        for number in range(cluster.workers)
    ]
