"""One line switches between the modes of training, on one checkpoint."""

import numbers
from typing import Any, Callable, Dict

from semisync.arguments import choice
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.optimizer import GlobalBatchOptimizer
from semisync.pacing import MeanStaleness
from semisync.staleness import Threshold

PRESETS: Dict[str, Callable[[int], Dict[str, Any]]] = {  # by mode: a function of M
    "sync": lambda _: {"paced": True},
    "balanced": lambda m: {
        "staleness": Threshold(4),
        "in_flight": MeanStaleness(max(0.125, 1 / m)),
    },
    "semi-sync": lambda _: {"staleness": Threshold(4)},
    "async": lambda _: {"policy": [("", "async")], "batch_norm": "async"},
    "hybrid": lambda _: {"staleness": Threshold(4), "policy": _sparse_at_once},
}


def wrap(optimizer, mode, global_batch, local_batch, **more):
    """A `GlobalBatchOptimizer` around `optimizer`, with the settings of a mode.

        sync        every gradient of a global batch is of that step's parameters
        balanced    an eighth of a global batch, or one batch of fewer than eight, may be one step
                    late, no more on average: where M is well above the number of workers, nearly
                    the AUC of sync at nearly the pace of async
        semi-sync   no worker waits; a batch more than 4 global steps late does not count
        async       each batch is applied at once
        hybrid      embeddings (sparse gradients) at once, the rest semi-sync; `in_flight` bounds
                    the batches whose gradients are still to come

    In every mode the global step counts M = global_batch / local_batch batches, so that schedules
    and checkpoints mean the same.

    Args:
        optimizer: any tf.compat.v1.train.Optimizer.
        mode: one of the five.
        global_batch, local_batch: examples; the second divides the first.
        **more: arguments of GlobalBatchOptimizer, which override the mode's.

    Returns:
        A `GlobalBatchOptimizer`.

    Raises:
        UsageError: an argument is invalid.

    Examples:
        >>> opt = semisync.wrap(tf.train.AdamOptimizer(0.001), "semi-sync", 32768, 1024)
        >>> opt.batches_per_step
        32
    """
    choice("mode", mode, tuple(PRESETS))
    for size in (global_batch, local_batch):
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
            raise UsageError("a batch is a whole number of examples, not {!r}".format(size))
    if global_batch % local_batch:
        raise UsageError(
            "the global batch, {}, is not a multiple of the local batch, {}".format(
                global_batch, local_batch
            )
        )
    batches_per_step = int(global_batch // local_batch)
    options = dict(PRESETS[mode](batches_per_step), **more)
    return GlobalBatchOptimizer(optimizer, batches_per_step, **options)


def _sparse_at_once(gradient, variable):
    return "async" if isinstance(gradient, tf.IndexedSlices) else "semi-sync"
