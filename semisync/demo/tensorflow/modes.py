"""The ways to train that the demo and the benchmarks compare, each around the same optimizer."""

import semisync
from semisync.common.compat import tf

LEDGER = ("semi-sync", "sync")  # the modes whose chief knows the staleness and fate of every batch


def wrap(mode, optimizer, batches_per_step, workers, bound, is_chief):
    """Returns (optimizer to minimize with, function -> hooks to pass to the session).

    Args:
      mode: "async", "native-sync", "semi-sync" or "sync".
      optimizer: any tf.compat.v1 optimizer.
      batches_per_step: M, for the modes that aggregate.
      workers: the number of processes that train.
      bound: on the staleness, in global steps, for semi-sync.
      is_chief: True in one process.
    """
    if mode == "async":
        return optimizer, list
    if mode == "native-sync":
        native = tf.train.SyncReplicasOptimizer(
            optimizer, replicas_to_aggregate=batches_per_step, total_num_replicas=workers
        )
        return native, lambda: [native.make_session_run_hook(is_chief)]
    more = {"paced": True} if mode == "sync" else {"staleness": semisync.Threshold(bound)}
    wrapped = semisync.GlobalBatchOptimizer(optimizer, batches_per_step, **more)
    return wrapped, lambda: [wrapped.make_session_run_hook(is_chief)]
