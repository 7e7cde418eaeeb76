"""The TensorFlow side of benchmarks/model.py; runs under Python 3.7 with TensorFlow 1.15.

write FOLDER                writes SavedModels of random values, without training
score FOLDER MODEL ROWS     asked with a number, scores the batch so often: (wall, CPU) seconds
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow.compat.v1 as tf

from benchmarks.harness.side import answer
from benchmarks.model_parts.batches import FIELDS, LENGTH, NUMBERS, STRINGS, batch_of
from benchmarks.tables import timed

tf.logging.set_verbosity(tf.logging.ERROR)
fc = tf.feature_column
THREADS = 2


def wide_and_deep(folder):
    """The canned Estimator: 26 columns of text, hashed; 13 numbers, in buckets; three crosses."""
    texts = ["C%02d" % k for k in range(STRINGS)]
    numbers = ["I%02d" % k for k in range(NUMBERS)]
    hashed = [fc.categorical_column_with_hash_bucket(name, 20000) for name in texts]
    buckets = [
        fc.bucketized_column(fc.numeric_column(name), [0.0, 1.0, 2.0, 4.0, 8.0]) for name in numbers
    ]
    crossed = [fc.crossed_column([one, other], 20000) for one, other in zip(texts[:3], texts[3:])]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=folder + "/job",
        linear_feature_columns=hashed + buckets + crossed,
        dnn_feature_columns=[fc.embedding_column(one, 16) for one in hashed] + buckets,
        dnn_hidden_units=[256, 128],
    )

    def rows():
        batch = batch_of("wide_and_deep", 32)
        return tf.data.Dataset.from_tensors((batch, np.zeros(32, np.float32)))

    def receiver():
        given = {name: tf.placeholder(tf.string, [None], name=name) for name in texts}
        given.update({name: tf.placeholder(tf.float32, [None], name=name) for name in numbers})
        return tf.estimator.export.ServingInputReceiver(given, given)

    estimator.train(rows, steps=1)
    made = estimator.export_saved_model(folder + "/exports", receiver).decode()
    os.rename(made, folder + "/wide_and_deep")


def deepfm(folder):
    """39 fields of numbered features with values; a perceptron of 400 and 400."""
    ids = tf.placeholder(tf.int64, [None, FIELDS], name="ids")
    value = tf.placeholder(tf.float32, [None, FIELDS], name="value")
    table = tf.get_variable("embeddings", [200000, 16])
    weights = tf.get_variable("weights", [200000, 1])
    rows = tf.nn.embedding_lookup(table, ids) * tf.expand_dims(value, 2)
    first = tf.reduce_sum(tf.squeeze(tf.nn.embedding_lookup(weights, ids), 2) * value, 1)
    square = tf.square(tf.reduce_sum(rows, 1)) - tf.reduce_sum(tf.square(rows), 1)
    net = tf.reshape(rows, [-1, FIELDS * 16])
    for width in (400, 400):
        net = tf.layers.dense(net, width, tf.nn.relu)
    logits = first + 0.5 * tf.reduce_sum(square, 1) + tf.squeeze(tf.layers.dense(net, 1), 1)
    save(folder + "/deepfm", {"ids": ids, "value": value}, {"logits": logits})


def sequence(folder):
    """A GRU over 20 items, dynamic_rnn's loop, then attention of the target over its outputs."""
    history = tf.placeholder(tf.int64, [None, LENGTH], name="history")
    length = tf.placeholder(tf.int32, [None], name="length")
    target = tf.placeholder(tf.int64, [None], name="target")
    table = tf.get_variable("items", [50000, 32])
    states, _ = tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(32), tf.nn.embedding_lookup(table, history), length, dtype=tf.float32
    )
    wanted = tf.nn.embedding_lookup(table, target)
    scores = tf.reduce_sum(states * tf.expand_dims(wanted, 1), 2)
    mask = tf.sequence_mask(length, LENGTH)
    weights = tf.nn.softmax(tf.where(mask, scores, tf.ones_like(scores) * -1e9))
    found = tf.reduce_sum(states * tf.expand_dims(weights, 2), 1)
    net = tf.layers.dense(tf.concat([found, wanted], 1), 64, tf.nn.relu)
    logits = tf.squeeze(tf.layers.dense(net, 1), 1)
    given = {"history": history, "length": length, "target": target}
    save(folder + "/sequence", given, {"logits": logits})


def save(path, inputs, outputs):
    with session() as running:
        running.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(running, path, inputs, outputs)


MODELS = {"wide_and_deep": wide_and_deep, "deepfm": deepfm, "sequence": sequence}


def session():
    return tf.Session(
        config=tf.ConfigProto(
            inter_op_parallelism_threads=THREADS, intra_op_parallelism_threads=THREADS
        )
    )


def write(folder):
    for build in MODELS.values():
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            build(folder)


def score(folder, model, rows):
    """Writes the logits to FOLDER/MODEL.npy, then answers."""
    with tf.Graph().as_default() as graph, session() as running:
        loaded = tf.saved_model.load(running, ["serve"], os.path.join(folder, model))
        signatures = loaded.signature_def
        signature = signatures["predict" if "predict" in signatures else "serving_default"]
        tensors = {
            name: graph.get_tensor_by_name(info.name) for name, info in signature.inputs.items()
        }
        logits = graph.get_tensor_by_name(signature.outputs["logits"].name)
        batch = batch_of(model, rows)
        call = running.make_callable(logits, [tensors[name] for name in sorted(batch)])
        given = [batch[name] for name in sorted(batch)]
        np.save(os.path.join(folder, model + ".npy"), call(*given))

        def measured(times):
            return timed(lambda: [call(*given) for _ in range(times)])[:2]

        said = "tensorflow {}, {} nodes".format(tf.VERSION, len(graph.get_operations()))
        answer(said, measured)


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2])
    else:
        score(sys.argv[2], sys.argv[3], int(sys.argv[4]))
