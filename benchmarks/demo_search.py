"""The search for the demo's learning rate: exact global batches in one process, no cluster.

    python -m benchmarks.demo_search [--rates R ...] [--seeds N]

Trains the demo's model with the demo's optimizer on the first days of the demo's training log and
scores the last of its days: the held-out rows of the demo take no part. A global batch is the mean
over its local batches, each normalised by its own statistics, all at the same parameters: what
`semisync.wrap(..., "sync")` computes. Prints the validation AUC as a Markdown table, over the
seeds, which set the initial values; the best mean is what `semisync.demo.story` uses, in all modes.
"""

import statistics

import numpy as np

import parity
from benchmarks.harness.options import options
from benchmarks.tables import head
from semisync.common.compat import tf
from semisync.demo import story
from semisync.demo.data import click_log, generator, schedule
from semisync.demo.tensorflow import deepfm

RATES = (0.001, 0.002, 0.004, 0.006, 0.008, 0.012)


def trained(train, held_out, rate, seed, workers=4):
    """The held-out AUC after training once on exact global batches of `workers` batches."""
    spec = story.settings_for(train, workers)
    steps = min(spec["batches"], train.rows // spec["batch"]) // workers
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(seed)
        inputs, losses = [], []
        for number in range(workers):
            with tf.variable_scope(tf.get_variable_scope(), reuse=number > 0):
                inputs.append(deepfm.Inputs(train))
                losses.append(deepfm.loss(inputs[-1], train, partitions=1))
        minimize = tf.train.AdamOptimizer(rate).minimize(tf.add_n(losses) / workers)
        train_op = tf.group(minimize, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
        session.run(tf.global_variables_initializer())
        for first in range(0, steps * workers, workers):
            feed = {}
            for number, batch in enumerate(inputs, first):
                feed.update(batch.feed(schedule.rows(number, train.rows, spec)))
            session.run(train_op, feed)
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            scores = deepfm.score(session, held_out, partitions=1)
    return parity.auc(np.asarray(held_out.labels), scores)


def main():
    args = options(__doc__, rates=RATES, seeds=10)
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    train, held_out = click_log.split(click_log.split(generator.generate())[0])
    print(f"{train.rows:,} rows to train on, {held_out.rows:,} later ones to score\n")
    print(head("learning rate | validation AUC, mean | sd of the seeds"))
    for rate in args.rates:
        aucs = [trained(train, held_out, rate, seed) for seed in range(1, args.seeds + 1)]
        sd = f"{statistics.stdev(aucs):.4f}" if len(aucs) > 1 else ""
        print(f"| {rate} | {statistics.mean(aucs):.4f} | {sd} |", flush=True)


if __name__ == "__main__":
    main()
