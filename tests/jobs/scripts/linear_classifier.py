#!/usr/bin/env python
"""Logistic regression with FTRL over crossed features (parameter servers via TF_CONFIG)."""

import argparse
import logging

import tensorflow as tf


def columns():
    users = tf.feature_column.categorical_column_with_identity("user", 40)
    items = tf.feature_column.categorical_column_with_identity("item", 25)
    categories = tf.feature_column.categorical_column_with_identity("category", 7)
    price = tf.feature_column.numeric_column("price")
    price_buckets = tf.feature_column.bucketized_column(price, [0.2, 0.4, 0.6, 0.8])
    crosses = [
        tf.feature_column.crossed_column([categories, price_buckets], hash_bucket_size=50),
        tf.feature_column.crossed_column([users, categories], hash_bucket_size=100),
    ]
    return [users, items, categories, price, tf.feature_column.numeric_column("hour")] + crosses


def read(path, batch_size, epochs):
    def decode(line):
        label, price, hour, user, item, category = tf.decode_csv(
            line, [[0], [0.0], [0.0], [0], [0], [0]]
        )
        row = {"price": price, "hour": hour, "user": user, "item": item, "category": category}
        return row, label

    return tf.data.TextLineDataset([path]).skip(1).map(decode).repeat(epochs).batch(batch_size)


def main(_):
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", help="training data")
    parser.add_argument("--eval", help="evaluation data")
    parser.add_argument("--job-dir", help="checkpoints and summaries")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--max-steps", type=int, default=10000)
    args, _ = parser.parse_known_args()

    run_config = tf.estimator.RunConfig(
        tf_random_seed=11, save_checkpoints_steps=1000, keep_checkpoint_max=3
    )
    estimator = tf.estimator.LinearClassifier(
        feature_columns=columns(),
        model_dir=args.job_dir,
        optimizer=tf.train.FtrlOptimizer(
            learning_rate=0.2, l1_regularization_strength=0.002, l2_regularization_strength=0.01
        ),
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        config=run_config,
    )
    logging.info("training")
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(
            input_fn=lambda: read(args.train, args.batch_size, None), max_steps=args.max_steps
        ),
        tf.estimator.EvalSpec(input_fn=lambda: read(args.eval, args.batch_size, 1)),
    )


if __name__ == "__main__":
    tf.app.run()
