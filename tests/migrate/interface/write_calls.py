"""Writes graphs whose commands `inspect --graph` prints; run as a script.

    python write_calls.py OUT

full, columns, rank, unknown: look-ups of a tf.sparse_placeholder, by what is known of its shape.
without_name/: the same without a name, in the ways to look up (READS).
features: placeholders of the types of those three, in their order, which are three features.
sparse_server: look-ups as TFRA has them in its graphs, written without it: a local variable, the
wrapper, is assigned the rows that an op finds in a hash table, and read back.
"""

import os
import pathlib
import sys

import tensorflow as tf

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

SHAPES = {"full": [8, 5], "columns": [None, 5], "rank": [None, None], "unknown": None}


def sparse(out, name):
    with tf.Graph().as_default(), tf.Session() as session:
        tags = tf.sparse_placeholder(tf.int64, SHAPES[name], name="tags")
        table, kernel = tf.get_variable("table", [40, 4]), tf.get_variable("kernel", [4, 1])
        pooled = tf.nn.embedding_lookup_sparse(table, tags, None, combiner="sum")
        tf.sigmoid(tf.matmul(pooled, kernel), name="score")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(out, name))


def looked_up(tags, table):
    return tf.nn.embedding_lookup_sparse(table, tags, None, combiner="mean")


def looked_up_safely(tags, table):
    return tf.nn.safe_embedding_lookup_sparse([table], tags, combiner="sum")


def made_dense(tags, table):
    return tf.reduce_sum(tf.gather(table, tf.sparse_tensor_to_dense(tags)), 1)


def summed(tags, table):
    return table[:1] * tf.sparse_reduce_sum(tf.cast(tags, tf.float32), 1)[:, None]


READS = [looked_up, looked_up_safely, made_dense, summed]


def without_name(out, read, shape):
    with tf.Graph().as_default(), tf.Session() as session:
        age = tf.placeholder(tf.float32, [None])
        tags = tf.sparse_placeholder(tf.int64, SHAPES[shape])
        table, kernel = tf.get_variable("table", [40, 4]), tf.get_variable("kernel", [4, 1])
        logits = tf.matmul(read(tags, table), kernel) + age[:, None]
        tf.sigmoid(logits, name="score")
        session.run(tf.global_variables_initializer())
        name = "{}_{}".format(read.__name__, shape)
        tf.train.Saver().save(session, os.path.join(out, "without_name", name))


def features(out):
    with tf.Graph().as_default(), tf.Session() as session:
        item, price = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None])
        history = tf.placeholder(tf.int64, [None, None])
        table, kernel = tf.get_variable("table", [40, 4]), tf.get_variable("kernel", [4, 1])
        vectors = tf.gather(table, item) + tf.reduce_mean(tf.gather(table, history), 1)
        tf.sigmoid(tf.matmul(vectors, kernel) + price[:, None], name="score")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, os.path.join(out, "features"))


def sparse_server(out):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None], name="ids")
        rows = tf.random_uniform([8, 4], name="lk/find_rows")
        rows = tf.identity(tf.gather(rows, ids), name="lk/find")
        local = [tf.GraphKeys.LOCAL_VARIABLES]
        wrapper = tf.get_variable(
            "lk/lk", [8, 4], use_resource=True, collections=local, validate_shape=False
        )
        with tf.control_dependencies([tf.assign(wrapper, rows, validate_shape=False)]):
            found = wrapper.read_value()
        kernel = tf.get_variable("kernel", [4, 1], use_resource=True)
        tf.sigmoid(tf.matmul(found, kernel), name="score")
        session.run(tf.global_variables_initializer())
        prefix = tf.train.Saver([kernel]).save(session, os.path.join(out, "sparse_server"))
        meta = tf.train.export_meta_graph(graph=graph)
        (find,) = [node for node in meta.graph_def.node if node.name == "lk/find"]
        find.op = "TFRA>CuckooHashTableFind"
        pathlib.Path(prefix + ".meta").write_bytes(meta.SerializeToString())


if __name__ == "__main__":
    (pathlib.Path(sys.argv[1]) / "version").write_text(tf.__version__)
    for name in SHAPES:
        sparse(sys.argv[1], name)
    for read in READS:
        for shape in ("columns", "unknown"):
            without_name(sys.argv[1], read, shape)
    features(sys.argv[1])
    sparse_server(sys.argv[1])
