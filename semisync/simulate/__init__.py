"""An event-driven simulator of training on parameter servers.

`simulate(cluster, mode, batches)` lets a job run in simulated time and returns its pace, staleness,
the fates of its batches, waiting and memory. `cluster` models a cluster, `events`
time and processors. `semi_synchronous` is not a model: the chief's own `Ledger` and the staleness
policies decide tickets and fates. It needs no TensorFlow.
"""

from semisync.simulate.advise import Advice, advise
from semisync.simulate.cluster import Cluster, Costs
from semisync.simulate.modes import SSP, Async, SemiSync, SyncReplicas
from semisync.simulate.simulation import Result, simulate
from semisync.simulate.times import Times, read_traces

__all__ = [
    "SSP",
    "Advice",
    "Async",
    "Cluster",
    "Costs",
    "Result",
    "SemiSync",
    "SyncReplicas",
    "Times",
    "advise",
    "read_traces",
    "simulate",
]
