"""The ways to train that the demo and the benchmarks compare, each around the same optimizer."""

from typing import Any, Dict

import semisync
from semisync.common.compat import tf

# The modes whose chief knows every batch's staleness and fate.
LEDGER = ("semi-sync", "balanced", "auto", "sync")


def wrap(mode, optimizer, batches_per_step, workers, bound, is_chief):
    """Returns (optimizer to minimize with, function -> hooks to pass to the session).

    Args:
        mode: "async", "native-sync", or of `semisync.wrap` "semi-sync", "balanced" or "sync";
            "auto" is semi-sync with in_flight="auto".
        optimizer: any tf.compat.v1 optimizer.
        batches_per_step: M, for the modes that aggregate.
        workers: the number of processes that train.
        bound: on the staleness, in global steps; sync has none.
        is_chief: True in one process.
    """
    if mode == "async":
        return optimizer, list
    if mode == "native-sync":
        native = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=batches_per_step, total_num_replicas=workers
        )
        return native, lambda: [native.make_session_run_hook(is_chief)]
    more: Dict[str, Any] = {"in_flight": "auto"} if mode == "auto" else {}
    if mode != "sync":
        more["staleness"] = semisync.Threshold(bound)
    preset = "semi-sync" if mode == "auto" else mode
    wrapped = semisync.wrap(optimizer, preset, batches_per_step, 1, **more)
    return wrapped, lambda: [wrapped.make_session_run_hook(is_chief)]
