"""Writes what feature columns make of raw features; run as a script.

    python write_expected.py OUT

OUT/NAME.npz per column: its ids (or dense values) and weights, as TensorFlow's graph computes them;
OUT/vocabulary.txt; OUT/inputs.npz: the raw features. Runs under TensorFlow 1.15 and 2.x.
"""

import os
import sys

import numpy as np
import rows
import tensorflow.compat.v1 as tf
from tensorflow.python.feature_column import feature_column_v2 as fc
from tensorflow_child import packed

COUNT = 500
BOUNDARIES = [-1.0, 0.0, 0.1, 7.25, 1000.0]


def raw_features():
    """The features of COUNT rows: dense ones with "" and -1 in them, and a sparse one."""
    generator = np.random.default_rng(18)
    return {
        "word": rows.words(generator, COUNT).reshape(-1, 1),
        "words": rows.words(generator, COUNT * 3).reshape(-1, 3),
        "id": rows.integers(generator, COUNT).reshape(-1, 1),
        "small": generator.integers(-1, 40, (COUNT, 2)),
        "price": rows.singles(generator, COUNT * 2).reshape(-1, 2),
        "weight": generator.random((COUNT, 3)).astype(np.float32) - np.float32(0.2),
        "sparse": rows.columns(generator, COUNT)[:3],
    }


def columns(vocabulary):
    """Each column by name; `vocabulary`: path of a file of words."""
    hashed = tf.feature_column.categorical_column_with_hash_bucket
    small = tf.feature_column.categorical_column_with_identity("small", 50, default_value=0)
    price = tf.feature_column.numeric_column("price", (2,))
    bucketized = tf.feature_column.bucketized_column(price, BOUNDARIES)
    from_list = tf.feature_column.categorical_column_with_vocabulary_list
    from_file = tf.feature_column.categorical_column_with_vocabulary_file
    crossed = tf.feature_column.crossed_column
    inner = crossed(["word", bucketized], 100)
    in_sequence = tf.feature_column.sequence_categorical_column_with_hash_bucket
    return {
        "hashed_words": hashed("words", 10007),
        "hashed_sparse": hashed("sparse", 10007),
        "hashed_integers": hashed("id", 1000003, tf.int64),
        "vocabulary_list": from_list("words", ["w1", "w2", "0", "a", "é"], num_oov_buckets=7),
        "vocabulary_default": from_list("words", ["w1", "w2", "0", "a", "é"], default_value=2),
        "vocabulary_numbers": from_list("small", [3, 1, 4, 15, 9, 2, 6]),
        "vocabulary_file": from_file("words", vocabulary, num_oov_buckets=3),
        "vocabulary_start": from_file("words", vocabulary, vocabulary_size=100),
        "identity": small,
        "bucketized": bucketized,
        "crossed_raw": crossed(["words", "id"], 1000003),
        "crossed_key": crossed(["words", "id"], 1000003, hash_key=17),
        "crossed_order": crossed(["id", "words"], 1000003),
        "crossed_columns": crossed([from_list("words", ["w1", "", "0", "a"]), small], 1000003),
        "crossed_nested": crossed([inner, "sparse", "small"], 1000003),
        "weighted": tf.feature_column.weighted_categorical_column(hashed("words", 997), "weight"),
        "sequence": in_sequence("sparse", 10007),
        "indicator": tf.feature_column.indicator_column(small),
    }


def outputs(column, cache):
    """The tensors of a column: a dense one, or those of its SparseTensors."""
    if isinstance(column, fc.DenseColumn):
        return {"dense": column.get_dense_tensor(cache, None)}
    pair = column.get_sparse_tensors(cache, None)
    found = {
        "indices": pair.id_tensor.indices,
        "values": pair.id_tensor.values,
        "shape": pair.id_tensor.dense_shape,
    }
    if pair.weight_tensor is not None:
        found["weights"] = pair.weight_tensor.values
    return found


def main(out):
    tf.disable_eager_execution()
    features = raw_features()
    vocabulary = os.path.join(out, "vocabulary.txt")
    known = sorted({word for word in rows.words(np.random.default_rng(0), 2000) if word})
    with open(vocabulary, "wb") as file:
        file.write(b"\n".join(known))
    indices, values, shape = features.pop("sparse")
    sparse = {"sparse_indices": indices, "sparse_values": values, "sparse_shape": shape}
    with open(os.path.join(out, "inputs.npz"), "wb") as file:
        file.write(packed(dict(features, **sparse)))
    tensors = {name: tf.constant(array) for name, array in features.items()}
    tensors["sparse"] = tf.SparseTensor(indices, values, shape)
    made = {
        name: outputs(column, fc.FeatureTransformationCache(tensors))
        for name, column in columns(vocabulary).items()
    }
    with tf.Session() as session:
        session.run(tf.tables_initializer())
        for name, arrays in session.run(made).items():
            with open(os.path.join(out, name + ".npz"), "wb") as file:
                file.write(packed(arrays))


if __name__ == "__main__":
    main(sys.argv[1])
