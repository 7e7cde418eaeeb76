"""The ops that `apply_gradients` built in one graph, for the hook and the chief's thread."""

from typing import Any, List, NamedTuple

from semisync.chief.operations import ChiefOps
from semisync.settings import Settings
from semisync.worker.operations import WorkerOps


class Handles(NamedTuple):
    """The ops and tensors of one `GlobalBatchOptimizer` in one graph, and its settings.

    Attributes:
        settings, chief, worker: see their types.
        draws_between_runs: True when a worker draws its tickets between the runs of its train op.
        number: of the optimizer among those of the graph, in the order in which they were built.
        global_step: the op of the variable that counts global batches.
        unfed: names of the tensors that the chief's step is made of and that go with no batch;
            feeding one of them has no effect.
    """

    settings: Settings
    chief: ChiefOps
    worker: WorkerOps
    draws_between_runs: bool
    number: int
    global_step: Any
    unfed: List[str]
