"""The canned Estimators. Each function gives an Estimator, and its optimizers by scope: see
`estimator.Canned`.
"""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.models import columns


def linear(vocabulary, mode, config):
    """Every kind of categorical column; FTRL."""
    optimizer = tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)
    return tf.estimator.LinearClassifier(
        columns.wide(vocabulary), optimizer=optimizer, config=config
    ), {"": optimizer}


def linear_mean(vocabulary, mode, config):
    """Three classes, weighted examples, and the mean of each multivalent column."""
    optimizer = tf.train.AdagradOptimizer(0.2, initial_accumulator_value=0.3)
    return tf.estimator.LinearClassifier(
        columns.multivalent()
        + [tf.feature_column.numeric_column("price"), columns.crossed_numbers()],
        n_classes=3,
        weight_column="importance",
        sparse_combiner="mean",
        optimizer=optimizer,
        config=config,
    ), {"": optimizer}


def dnn(vocabulary, mode, config):
    """Every kind of dense column, BatchNorm and dropout."""
    optimizer = tf.train.AdagradOptimizer(0.05)
    return tf.estimator.DNNClassifier(
        [16, 8],
        columns.deep(vocabulary),
        batch_norm=True,
        dropout=mode.rate(0.2) or None,
        optimizer=optimizer,
        config=config,
    ), {"": optimizer}


def dnn_classes(vocabulary, mode, config):
    """Classes that are words, tanh, Adam, the mean over the batch as the loss."""
    optimizer = tf.train.AdamOptimizer(0.01)
    return tf.estimator.DNNClassifier(
        [12],
        [columns.price(), tf.feature_column.embedding_column(columns.tags(), 4)],
        n_classes=3,
        label_vocabulary=[kind.decode() for kind in log.KINDS],
        activation_fn=tf.tanh,
        loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        optimizer=optimizer,
        config=config,
    ), {"": optimizer}


def wide_and_deep(vocabulary, mode, config):
    """FTRL and Adagrad, columns for each, variables in up to three partitions."""
    wide, deep = tf.train.FtrlOptimizer(0.1), tf.train.AdagradOptimizer(0.05)
    return tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=columns.multivalent(),
        linear_optimizer=wide,
        dnn_feature_columns=columns.embeddings(vocabulary),
        dnn_optimizer=deep,
        dnn_hidden_units=[16, 8],
        dnn_dropout=mode.rate(0.1) or None,
        batch_norm=True,
        input_layer_partitioner=tf.min_max_variable_partitioner(3, min_slice_size=200),
        config=config,
    ), {"linear": wide, "dnn": deep}
