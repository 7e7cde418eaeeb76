"""Writes graphs of feature columns that become vectors: write_columns.py FOLDER.

layer/      tf.feature_column.input_layer
keras/      tf.keras.layers.DenseFeatures
            each a checkpoint, model, with what it is fed and gives, rows.npz
"""

import os
import sys

os.environ["TF_USE_LEGACY_KERAS"] = "1"  # whose DenseFeatures Keras 3 has no longer

import numpy as np
import tensorflow as tf2
from tensorflow.compat import v1 as tf

fc = tf2.feature_column
ROWS = {
    "city": [["Bern"], [""], ["Oslo"], ["Rome"], ["Bern"], ["nowhere"]],
    "words": [["red", "red", "blue"], ["", "", ""], ["tall", "", "red"]] * 2,
    "device": [[3], [-1], [0], [7], [2], [-5]],
    "codes": [[4, 4], [-1, 9], [-1, -1], [0, 1], [9, 9], [8, -1]],
    "hour": [[23], [24], [0], [-1], [-3], [100]],
    "age": [[17.9], [18.0], [64.0], [-0.0], [np.nan], [1e9]],
    "heat": [[0.05, -2.0], [0.1, 1.0], [-1.0, 0.0], [-0.0, 0.0], [5.0, 5.0], [np.inf, -np.inf]],
    "price": [[1.5], [20.0], [3.0], [4.5], [0.25], [7.0]],
}
TAGS = [["a", "b", "a"], [], ["c"], ["a"], [], ["b", "", "zz"]]
SCORES = [[0.5, -2.0, 3.0], [], [0.0], [1.5], [], [np.nan, 1e-3, 0.25]]
TAGGED = ["tags", "kinds", "brands", "shops"]
TYPES = {str: tf.string, int: tf.int64, float: tf.float32}


def weighted(name, buckets):
    column = fc.categorical_column_with_hash_bucket(name, buckets)
    return fc.weighted_categorical_column(column, "scores")


def columns(of_one=True):
    """of_one: whether columns may share a table, as those of TensorFlow 1.x do."""
    text = ["Bern", "Oslo", "Rome"]
    ages = fc.bucketized_column(fc.numeric_column("age"), [18.0, 25.0, 64.0])
    heats = fc.bucketized_column(fc.numeric_column("heat", shape=[2]), [-1.0, 0.0, 0.1, 1.0])
    listed = fc.categorical_column_with_vocabulary_list
    hour = fc.categorical_column_with_identity("hour", 24, default_value=2)
    device = fc.categorical_column_with_hash_bucket("device", 5, dtype=tf.int64)
    codes = fc.categorical_column_with_identity("codes", 24, default_value=3)
    other_hour = fc.categorical_column_with_identity("hour", 24, default_value=5)
    shared = tf.feature_column.shared_embedding_columns
    return [
        fc.indicator_column(listed("city", text, num_oov_buckets=2)),
        fc.indicator_column(listed("words", ["red", "blue"])),
        fc.indicator_column(listed("codes", [4, 9, 0], dtype=tf.int64, default_value=1)),
        fc.indicator_column(hour),
        fc.indicator_column(device),
        fc.indicator_column(fc.categorical_column_with_hash_bucket("tags", 4)),
        fc.indicator_column(fc.crossed_column([ages, "city"], 6)),
        ages,
        heats,
        fc.embedding_column(heats, 3, combiner="sum"),
        fc.embedding_column(ages, 2),
        fc.embedding_column(listed("city", text, default_value=0), 2),
        fc.embedding_column(weighted("tags", 5), 3, "sum"),
        fc.embedding_column(weighted("kinds", 6), 3, "mean"),
        fc.embedding_column(weighted("brands", 7), 3, "sqrtn"),
        fc.embedding_column(weighted("shops", 8), 3, "sqrtn", max_norm=0.4),
        fc.embedding_column(fc.crossed_column(["city", "device"], 11), 2, max_norm=0.3),
        *(shared([codes, other_hour], 4, max_norm=0.5) if of_one else ()),
        fc.numeric_column("price", normalizer_fn=lambda price: (tf.log(price) - 0.1) / 1.3),
    ]


def write(folder, layer):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        features = {
            name: tf.placeholder(TYPES[type(rows[0][0])], [None, len(rows[0])], name)
            for name, rows in ROWS.items()
        }
        for name in TAGGED:
            features[name] = tf.sparse_placeholder(tf.string, [None, None], name)
        features["scores"] = tf.sparse_placeholder(tf.float32, [None, None], "scores")
        vectors = tf.identity(layer(features), "vectors")
        kernel = tf.get_variable("kernel", [int(vectors.shape[1]), 1])
        crossed = fc.crossed_column(["city", "words"], 9)
        wide = [crossed, weighted("tags", 6), weighted("kinds", 6)]
        linear = tf.feature_column.linear_model(features, wide, sparse_combiner="mean")
        tf.add(tf.matmul(vectors, kernel), linear, name="predicted")
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        random = np.random.RandomState(0)
        for variable in tf.trainable_variables("linear_model"):  # which begin as zeros
            session.run(variable.assign(random.randn(*variable.shape.as_list())))
        places = [(row, k) for row, tags in enumerate(TAGS) for k in range(len(tags))]
        values = [tag for tags in TAGS for tag in tags]
        given = dict(ROWS)
        for name, one in [*((name, values) for name in TAGGED), ("scores", sum(SCORES, []))]:
            given[name + "/indices"], given[name + "/values"] = places, one
            given[name + "/shape"] = [len(TAGS), 3]
        found = session.run(["vectors:0", "predicted:0"], {f"{k}:0": v for k, v in given.items()})
        tf.train.Saver().save(session, os.path.join(folder, "model"))
    arrays = {name: np.array(value) for name, value in given.items()}
    np.savez(os.path.join(folder, "rows.npz"), vectors=found[0], predicted=found[1], **arrays)


def main(folder):
    tf.disable_v2_behavior()
    layers = {
        "layer": lambda features: tf.feature_column.input_layer(features, columns()),
        "keras": lambda features: tf.keras.layers.DenseFeatures(columns(of_one=False))(features),
    }
    for name, layer in layers.items():
        os.mkdir(os.path.join(folder, name))
        write(os.path.join(folder, name), layer)


if __name__ == "__main__":
    main(sys.argv[1])
