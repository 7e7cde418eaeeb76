"""Feature columns in a graph by hand: input_layer, linear_model, and columns of sequences."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained

fc = tf.feature_column


def input_layer(mode):
    """Placeholders into the columns; runs in TensorFlow 2.x, which has no Estimators any more."""
    features = {
        "age": tf.placeholder(tf.float32, [None], name="age"),
        "user": tf.placeholder(tf.int64, [None], name="user"),
        "item": tf.placeholder(tf.string, [None], name="item"),
        "city": tf.placeholder(tf.string, [None, 1], name="city"),
        "words": tf.placeholder(tf.string, [None, 4], name="words"),
        "tags": tf.sparse_placeholder(tf.string, [None, None], name="tags"),
    }
    label = tf.placeholder(tf.float32, [None, 1], name="label")
    ages = fc.bucketized_column(fc.numeric_column("age"), [20.0, 30.0, 40.0, 60.0])
    words = fc.categorical_column_with_vocabulary_list("words", ["red", "blue", "green"])
    user = fc.categorical_column_with_hash_bucket("user", 25, dtype=tf.int64)
    tags = fc.categorical_column_with_hash_bucket("tags", 20)
    crossed = fc.crossed_column([ages, "item", "user"], 45, hash_key=123)
    wide = fc.linear_model(features, [ages, words, crossed, tags])
    deep = fc.input_layer(
        features,
        [
            fc.embedding_column(crossed, 3),
            fc.embedding_column(user, 4),
            fc.embedding_column(tags, 4, combiner="sqrtn"),
            fc.indicator_column(fc.categorical_column_with_hash_bucket("city", 6)),
            fc.indicator_column(words),
        ],
    )
    logits = wide + tf.layers.dense(tf.layers.dense(deep, 8, tf.nn.relu), 1)
    loss = tf.losses.sigmoid_cross_entropy(label, logits)
    optimizer = tf.train.AdagradOptimizer(0.1)
    return Model(
        inputs=dict(
            {name: features[name] for name in features if name != "city"},
            city_column=features["city"],
        ),
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


PARSED = {
    "age": tf.FixedLenFeature([], tf.float32),
    "stats": tf.FixedLenFeature([3], tf.float32),
    "city": tf.FixedLenFeature([], tf.string, default_value=b""),
    "device": tf.FixedLenFeature([], tf.int64, default_value=-1),
    "tags": tf.VarLenFeature(tf.string),
    "tag_ids": tf.VarLenFeature(tf.int64),
    "tag_scores": tf.VarLenFeature(tf.float32),
}


def parse_example(mode):
    """Serialised Examples parsed in the graph itself; Adagrad."""
    serialized = tf.placeholder(tf.string, [None], name="serialized")
    label = tf.placeholder(tf.float32, [None, 1], name="label")
    parsed = tf.parse_example(serialized, PARSED)
    hashed = fc.categorical_column_with_hash_bucket
    tags = fc.weighted_categorical_column(
        fc.categorical_column_with_identity("tag_ids", log.TAGS), "tag_scores"
    )
    net = fc.input_layer(
        parsed,
        [
            fc.bucketized_column(fc.numeric_column("age"), [25.0, 50.0]),
            fc.numeric_column("stats", shape=[3]),
            fc.embedding_column(hashed("city", 10), 3),
            fc.embedding_column(hashed("device", 8, dtype=tf.int64), 3),
            fc.embedding_column(hashed("tags", 15), 3, combiner="sum"),
            fc.embedding_column(tags, 3),
        ],
    )
    logits = tf.layers.dense(tf.layers.dense(net, 6, tf.nn.relu), 1)
    loss = tf.losses.sigmoid_cross_entropy(label, logits)
    optimizer = tf.train.AdagradOptimizer(0.1)
    return Model(
        inputs={"example": serialized},
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def sequence_columns(mode):
    """Columns of sequences into a GRU; a mask from their lengths; Adagrad."""
    items = tf.sparse_placeholder(tf.int64, [None, None], name="history_items")
    age = tf.placeholder(tf.float32, [None], name="age")
    label = tf.placeholder(tf.float32, [None, 1], name="label")
    column = fc.embedding_column(
        fc.sequence_categorical_column_with_identity("history_items", log.ITEMS), 5
    )
    sequence, length = tf.keras.experimental.SequenceFeatures([column])({"history_items": items})
    cell = tf.nn.rnn_cell.GRUCell(6)
    _, state = tf.nn.dynamic_rnn(cell, sequence, sequence_length=length, dtype=tf.float32)
    numbers = fc.input_layer({"age": age}, [fc.numeric_column("age", normalizer_fn=_normalize)])
    logits = tf.layers.dense(tf.concat([state, numbers], 1), 1)
    loss = tf.losses.sigmoid_cross_entropy(label, logits)
    optimizer = tf.train.AdagradOptimizer(0.1)
    return Model(
        inputs={"history_items": items, "age": age},
        labels={"clicked_column": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def _normalize(age):
    return (age - 40.0) / 20.0
