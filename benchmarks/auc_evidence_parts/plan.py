"""The experiment's fixed choices, and what a seed determines: the batches, their order, which are
slow.

A seed determines the same in every mode, so that modes can be compared seed by seed: the initial
values, the sequence of local batches, and which of them are slow. Which worker trains a batch, and
when, no seed determines: a worker takes the next batch of the sequence when it is free.
"""

from collections import namedtuple

import numpy as np

from semisync.common.compat import tf

Settings = namedtuple(
    "Settings",
    "learning_rate async_rate local_batch batches_per_step epochs most_steps workers ps bound"
    " pause pause_in slow_share slow_factor slow_worker optimizer beta1 low_beta1"
    " backups prefetch",
)

# How these were picked. For Adam with a falling rate, learning_rate and epochs have the best
# validation AUC of the exact global batch (seed 1). Three epochs: 0.003 0.7851,
# 0.004 0.7870, 0.006 0.7882, 0.009 0.7876; two: 0.006 0.7866; five, overfitted: 0.004 0.7854.
# Adam itself was not picked that way: Adagrad (first accumulator 1e-6, rate 0.05, three epochs)
# reached 0.7892, but lost 0.004 to 0.007 with gradients one step late (rate 0.07), where Adam loses
# 0.0006 to 0.002. So the choice of the optimizer favours semi-sync. async_rate is the better of
# 0.0007 and 0.002, in one run each: a far smaller search.
CHOSEN = Settings(
    learning_rate=0.006,
    async_rate=0.002,  # of async-tuned, picked by asynchronous training
    local_batch=256,
    batches_per_step=8,
    epochs=3,
    most_steps=None,  # global batches, if fewer than the epochs have
    workers=8,
    ps=2,
    bound=4,  # global steps, semisync.Threshold
    pause=0.01,  # seconds per batch, besides computing
    pause_in="computing",  # after the gradients are computed, or in "reading", before
    slow_share=0.2,  # of the batches pause slow_factor times as long,
    slow_factor=5,
    slow_worker=2,  # and all of the last worker's pause this many times as long
    optimizer="adam",  # or "adagrad"
    beta1=0.9,  # of Adam
    low_beta1=0.7,  # of low-beta1, picked of 0.5 to 0.8 in one process, on validation days
    backups=4,  # batches more than a global batch has, of the mode that drops the last ones
    prefetch=0,  # batches that a worker reads ahead while it trains
)
CHOICES = {"optimizer": ("adam", "adagrad"), "pause_in": ("computing", "reading")}
SPLITS = {  # days first <= day < last: to train on, to score
    "test": ((0, 25), (25, 30)),
    "validation": ((0, 21), (21, 25)),
}


def changed(changes):
    """CHOSEN, changed by a list of "NAME=VALUE"; raises ValueError for a bad name or value."""
    values = {}
    for change in changes:
        name, _, value = change.partition("=")
        if name not in Settings._fields or value not in CHOICES.get(name, [value]):
            raise ValueError("{} is none of {}".format(change, CHOICES.get(name, Settings._fields)))
        values[name] = (int if name == "most_steps" else type(getattr(CHOSEN, name)))(value)
    return CHOSEN._replace(**values)


def batches(rows, settings, seed):
    """int64 [batches, local_batch]: the row numbers of each local batch, in training order.

    Every epoch is shuffled anew. Rows at the end that fill no whole global batch are left out.

    Args:
        rows: the slice to train on.
    """
    random = np.random.RandomState(seed)
    count = rows.stop - rows.start
    order = np.concatenate([random.permutation(count) for _ in range(settings.epochs)])
    whole = settings.local_batch * settings.batches_per_step
    steps = len(order) // whole
    steps = min(steps, settings.most_steps or steps)
    order = order[: steps * whole] + rows.start
    return order.reshape(-1, settings.local_batch)


def pauses(count, settings, seed):
    """float32 [count]: the seconds that each of `count` batches takes besides computing."""
    slow = np.random.RandomState(1000 + seed).rand(count) < settings.slow_share
    return np.where(slow, settings.slow_factor, 1).astype(np.float32) * settings.pause


def model_seed(seed):
    """The seed of the first variable; `model.logits` counts on from it."""
    return 100 * seed


def optimizer(name, learning_rate, global_step, steps, beta1):
    """The optimizer of every mode, a new one: Adam, its rate falling to 0 over the run, or Adagrad
    at one rate.

    Args:
        name: "adam" or "adagrad".
        learning_rate: at the beginning.
        global_step: the variable.
        steps: how many global steps the run has; asynchronous, one for each local batch.
        beta1: how much of the mean gradient Adam keeps.
    """
    if name == "adagrad":
        return tf.train.AdagradOptimizer(learning_rate, initial_accumulator_value=1e-6)
    rate = tf.train.polynomial_decay(learning_rate, global_step, steps, end_learning_rate=0.0)
    return tf.train.AdamOptimizer(rate, beta1)
