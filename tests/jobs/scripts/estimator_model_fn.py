"""DeepFM-like CTR model as a custom Estimator. The cluster comes from TF_CONFIG."""

from __future__ import absolute_import, division, print_function

import argparse
import json
import os

import tensorflow as tf

_CSV_COLUMNS = ["label", "price", "hour", "user", "item", "category"]
_CSV_COLUMN_DEFAULTS = [[0.0], [0.0], [0.0], [0], [0], [0]]
_VOCABULARY = {"user": 40, "item": 25, "category": 7}


def build_model_columns(embedding_size):
    numeric = [tf.feature_column.numeric_column(name) for name in ("price", "hour")]
    embeddings = [
        tf.feature_column.embedding_column(
            tf.feature_column.categorical_column_with_identity(name, size), embedding_size
        )
        for name, size in sorted(_VOCABULARY.items())
    ]
    return numeric, embeddings


def input_fn(data_file, batch_size, num_epochs=1):
    def parse_csv(value):
        columns = tf.decode_csv(value, record_defaults=_CSV_COLUMN_DEFAULTS)
        features = dict(zip(_CSV_COLUMNS, columns))
        labels = features.pop("label")
        return features, labels

    dataset = tf.data.TextLineDataset(data_file).skip(1)
    dataset = dataset.map(parse_csv, num_parallel_calls=2)
    # We call repeat after mapping, so the parsed rows of all epochs make full batches.
    return dataset.repeat(num_epochs).batch(batch_size).prefetch(1)


def model_fn(features, labels, mode, params):
    numeric_columns, embedding_columns = params["columns"]

    with tf.variable_scope("dnn", partitioner=tf.fixed_size_partitioner(params["num_ps"])):
        net = tf.feature_column.input_layer(features, numeric_columns + embedding_columns)
        for i, units in enumerate(params["hidden_units"]):
            net = tf.layers.dense(net, units, activation=tf.nn.relu, name="hidden_%d" % i)
        deep = tf.layers.dense(net, 1, name="logits")

    with tf.variable_scope("fm"):
        vectors = [tf.feature_column.input_layer(features, [c]) for c in embedding_columns]
        total, squares = tf.add_n(vectors), tf.add_n([tf.square(v) for v in vectors])
        fm = 0.5 * tf.reduce_sum(tf.square(total) - squares, axis=1, keepdims=True)

    logits = deep + fm
    predictions = {"probabilities": tf.sigmoid(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions=predictions)

    labels = tf.expand_dims(labels, 1)
    loss = tf.losses.sigmoid_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        metrics = {"auc": tf.metrics.auc(labels, predictions["probabilities"])}
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)

    optimizer = tf.train.AdamOptimizer(params["learning_rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--train_data", required=True)
    parser.add_argument("--test_data", required=True)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--train_steps", type=int, default=None)
    args = parser.parse_args(argv[1:])

    cluster = json.loads(os.environ.get("TF_CONFIG", "{}")).get("cluster", {})
    run_config = tf.estimator.RunConfig(
        model_dir=args.model_dir, tf_random_seed=19830610, save_summary_steps=10
    )
    estimator = tf.estimator.Estimator(
        model_fn=model_fn,
        config=run_config,
        params={
            "columns": build_model_columns(4),
            "hidden_units": [16, 8],
            "learning_rate": 0.01,
            "num_ps": len(cluster.get("ps", [])) or 1,
        },
    )
    train_spec = tf.estimator.TrainSpec(
        lambda: input_fn(args.train_data, args.batch_size), max_steps=args.train_steps
    )
    eval_spec = tf.estimator.EvalSpec(lambda: input_fn(args.test_data, args.batch_size))
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.INFO)
    tf.app.run(main)
