"""The arguments of `GlobalBatchOptimizer`, checked, as the graph is built by them."""

from typing import Any, List, NamedTuple, Optional

from semisync import arguments
from semisync.aggregate import updates as shared


class Options(NamedTuple):
    """See `GlobalBatchOptimizer` for the meaning of each.

    Attributes:
        mode_of: function (gradient, variable) -> "semi-sync" or "async", made of `policy`.
        shared_updates: list of (compiled regex, how).
    """

    batches_per_step: int
    staleness: Any
    on_stale: str
    on_nonfinite: str
    sparse_mean: str
    mode_of: Any
    batch_norm: str
    shared_updates: List[Any]
    paced: Any
    in_flight: Optional[int]
    repeated_ids: str
    name: str


def checked(
    batches_per_step,
    staleness=None,
    on_stale="keep",
    on_nonfinite="drop",
    sparse_mean="batches",
    policy=None,
    batch_norm="aggregate",
    shared_updates=None,
    paced=False,
    in_flight=None,
    repeated_ids="sum",
    name="GlobalBatch",
):
    """Makes `Options` of checked arguments.

    Raises:
        UsageError: one is wrong.
    """
    paced, in_flight = arguments.pace(paced, in_flight)
    return Options(
        batches_per_step=arguments.count(
            "batches_per_step", "the number of local batches in a global batch", batches_per_step
        ),
        staleness=arguments.staleness_policy(staleness),
        on_stale=arguments.choice("on_stale", on_stale, ("keep", "drop")),
        on_nonfinite=arguments.choice("on_nonfinite", on_nonfinite, ("drop", "keep", "stop")),
        sparse_mean=arguments.choice("sparse_mean", sparse_mean, ("batches", "touches", "sum")),
        mode_of=arguments.variable_policy(policy),
        batch_norm=arguments.choice(
            "batch_norm", batch_norm, ("aggregate", "aggregate-once", "async")
        ),
        shared_updates=arguments.rules("shared_updates", shared_updates or [], shared.HOW),
        paced=paced,
        in_flight=in_flight,
        repeated_ids=arguments.choice("repeated_ids", repeated_ids, ("sum", "last")),
        name=name,
    )
