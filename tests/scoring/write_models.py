"""Writes one click model in every form that `semisync score` opens, and what it scores.

    python write_models.py FOLDER

Runs on TensorFlow 1.15 and 2.x. FOLDER/rows.npz has the columns user (int64), age (float32) and
genres (int64, those of all rows one after the other; `many` says how many each row has). Written
into FOLDER are

    model.ckpt.*    a training graph on a parameter server: placeholders, a sparse_placeholder,
                    dropout by a switch
    saved           SavedModel: dense and sparse inputs, logits and two columns of probabilities
    examples        SavedModel that takes serialized Examples, in which age is 30 where missing
    eager           SavedModel of a tf.function, where TensorFlow is 2.x
    expected.npz    logits, eager: what a session says of the rows
"""

import os
import sys

import numpy as np
import tensorflow
import tensorflow.compat.v1 as tf

USERS, GENRES, DIM = 40, 128, 4


def logits(user, genres, age, training):
    """[rows, 1]; user int64 [rows], genres SparseTensor of int64, age float32 [rows, 1]."""
    normal = tf.random_normal_initializer(stddev=1.0, seed=3)
    halves = tf.fixed_size_partitioner(2)
    users = tf.get_variable("user", [USERS, DIM], initializer=normal, partitioner=halves)
    table = tf.get_variable("genre", [GENRES, DIM], initializer=normal)
    kernel = tf.get_variable("kernel", [2 * DIM + 1, 1], initializer=normal)
    mine = tf.nn.embedding_lookup(users, tf.floormod(user, USERS), partition_strategy="div")
    liked = tf.nn.safe_embedding_lookup_sparse([table], genres, combiner="sum")
    layer = tf.concat([mine, liked, age / 50.0], 1)
    layer = tf.cond(training, lambda: tf.nn.dropout(layer, rate=0.5), lambda: layer)
    return tf.matmul(layer, kernel, name="logits")


def write_checkpoint(prefix, rows):
    """Returns the logits of the rows."""
    with tf.Graph().as_default(), tf.Session() as session:
        user = tf.placeholder(tf.int64, [None], "user_id")
        age = tf.placeholder(tf.float32, [None, 1], "age")
        genres = tf.sparse_placeholder(tf.int64, name="genres")
        training = tf.placeholder(tf.bool, [], "is_training")
        output = logits(user, genres, age, training)
        session.run(tf.global_variables_initializer())
        saver = tf.train.Saver()
        saver.save(session, prefix, write_meta_graph=False)
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        for node in meta.graph_def.node:
            node.device = "/job:ps/task:0"
        with open(prefix + ".meta", "wb") as file:
            file.write(meta.SerializeToString())
        starts = np.cumsum(rows["many"]) - rows["many"]
        places = np.arange(len(rows["genres"])) - np.repeat(starts, rows["many"])
        indices = np.stack([np.repeat(np.arange(len(starts)), rows["many"]), places], 1)
        sparse = tf.SparseTensorValue(indices, rows["genres"], [len(starts), rows["many"].max()])
        feed = {user: rows["user"], age: rows["age"][:, None], genres: sparse, training: False}
        return session.run(output, feed)[:, 0]


def write_saved_models(folder, prefix):
    with tf.Graph().as_default(), tf.Session() as session:
        user = tf.placeholder(tf.int64, [None])
        age = tf.placeholder(tf.float32, [None, 1])
        genres = tf.sparse_placeholder(tf.int64)
        output = logits(user, genres, age, tf.constant(False))
        click = tf.sigmoid(output)
        outputs = {"logits": output, "probabilities": tf.concat([1 - click, click], 1)}
        tf.train.Saver().restore(session, prefix)
        tf.saved_model.simple_save(
            session, folder + "/saved", {"user": user, "age": age, "genres": genres}, outputs
        )
    with tf.Graph().as_default(), tf.Session() as session:
        serialized = tf.placeholder(tf.string, [None])
        features = {
            "user": tf.FixedLenFeature([], tf.int64),
            "age": tf.FixedLenFeature([1], tf.float32, [30.0]),
            "genres": tf.VarLenFeature(tf.int64),
        }
        parsed = tf.parse_example(serialized, features)
        output = logits(parsed["user"], parsed["genres"], parsed["age"], tf.constant(False))
        tf.train.Saver().restore(session, prefix)
        tf.saved_model.simple_save(
            session, folder + "/examples", {"examples": serialized}, {"logits": output}
        )


def write_eager(folder, rows):
    """Returns the scores of the rows."""
    module = tensorflow.Module()
    module.weight = tensorflow.Variable([0.25])

    @tensorflow.function(
        input_signature=[
            tensorflow.TensorSpec([None], tensorflow.int64, "user"),
            tensorflow.TensorSpec([None], tensorflow.float32, "age"),
        ]
    )
    def score(user, age):
        return {"scores": module.weight * age - tensorflow.cast(user % 7, tensorflow.float32)}

    tensorflow.saved_model.save(module, folder + "/eager", signatures=score)
    return score(rows["user"], rows["age"])["scores"].numpy()


def main(folder):
    rows = np.load(os.path.join(folder, "rows.npz"))
    prefix = os.path.join(folder, "model.ckpt")
    expected = {"logits": write_checkpoint(prefix, rows)}
    write_saved_models(folder, prefix)
    if tf.executing_eagerly():
        expected["eager"] = write_eager(folder, rows)
    np.savez(os.path.join(folder, "expected.npz"), **expected)


if __name__ == "__main__":
    main(sys.argv[1])
