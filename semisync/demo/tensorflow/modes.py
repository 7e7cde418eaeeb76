"""The ways to train that the demo and the benchmarks compare, each around the same optimizer."""

from typing import Any, Dict

import semisync
from semisync.common.compat import tf

LEDGER = ("semi-sync", "auto", "sync")  # whose chief knows every batch's staleness and fate


def wrap(mode, optimizer, batches_per_step, workers, bound, is_chief):
    """Returns (optimizer to minimize with, function -> hooks to pass to the session).

    Args:
        mode: "async", "native-sync", "semi-sync", "auto" (the same with in_flight="auto") or
            "sync".
        optimizer: any tf.compat.v1 optimizer.
        batches_per_step: M, for the modes that aggregate.
        workers: the number of processes that train.
        bound: on the staleness, in global steps, for semi-sync and auto.
        is_chief: True in one process.
    """
    if mode == "async":
        return optimizer, list
    if mode == "native-sync":
        native = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=batches_per_step, total_num_replicas=workers
        )
        return native, lambda: [native.make_session_run_hook(is_chief)]
    more: Dict[str, Any] = (
        {"paced": True} if mode == "sync" else {"staleness": semisync.Threshold(bound)}
    )
    if mode == "auto":
        more["in_flight"] = "auto"
    wrapped = semisync.GlobalBatchOptimizer(optimizer, batches_per_step, **more)
    return wrapped, lambda: [wrapped.make_session_run_hook(is_chief)]
