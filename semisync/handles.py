"""What `apply_gradients` has built in one graph, as the hook and the chief's thread run it."""

from typing import Any, Dict, List, NamedTuple


class Handles(NamedTuple):
    """The ops and tensors of one `GlobalBatchOptimizer` in one graph, and its settings.

    Attributes:
      batches_per_step, on_stale, paced, in_flight: see `GlobalBatchOptimizer`.
      hyperparameters: {name: value} of the wrapped optimizer's own numbers.
      manifest: what the payload is made of, a list of strings.
      draws_between_runs: whether a worker's tickets are drawn between the runs of its train op.
      number: of the optimizer among those of the graph, in the order in which they were built.
      global_step: a variable; None where another optimizer of the graph counts global batches.
      desk, board, worker, assembly, step: see the modules of these names.
      clear_shelves: the op that throws away every payload on the PS.
      first_clock: the global step as an int64 tensor.
      policy_probe: see `settings.probe`.
      pings: see `watch.pings`.
      aggregated_gradients: the global batch's, a list of (gradient, variable).
      unfed: names of the tensors that the chief's step is made of and no batch brings; to feed one
        of them has no effect.
    """

    batches_per_step: int
    on_stale: str
    paced: bool
    in_flight: Any
    hyperparameters: Dict[str, float]
    manifest: List[str]
    draws_between_runs: bool
    number: int
    global_step: Any
    desk: Any
    board: Any
    worker: Any
    assembly: Any
    step: Any
    clear_shelves: Any
    first_clock: Any
    policy_probe: Any
    pings: Dict[str, Any]
    aggregated_gradients: List[Any]
    unfed: List[str]

    @property
    def fate(self):
        """What became of this worker's last batch, int64 [2]: see `GlobalBatchOptimizer`."""
        return self.worker.fate
