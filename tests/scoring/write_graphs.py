"""Writes training graphs that feed themselves or fix their batch, and what their sessions score.

    python write_graphs.py FOLDER

Runs on TensorFlow 1.15 and 2.x. FOLDER/rows.npz has the columns x (float32) and item (int64).
Written into FOLDER, each with its checkpoint, are

    fixed      placeholders of 128 rows; mean is that of their logits
    sparse     the same with a sparse_placeholder beside a placeholder of 128 rows
    iterator   rows from an initializable iterator, which only its job initializes
    queue      rows from a queue that no runner fills
    batch      BatchNorm of the batch's own mean and variance
    chance     dropout that nothing turns off
    shapes     `_output_shapes` that contradict what this TensorFlow infers; in old.meta also a
               version 0.12.head, and saved is a SavedModel with such shapes
    expected.npz   by graph, the logits of the rows; of fixed 128 at a time, the last row repeated
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

FIXED = 128


def logits(x, item):
    """[rows, 1]; x float32 [rows, 1], item int64 [rows]."""
    normal = tf.random_normal_initializer(seed=3)
    table = tf.get_variable("items", [50, 4], initializer=normal)
    kernel = tf.get_variable("kernel", [5, 1], initializer=normal)
    layer = tf.concat([tf.nn.embedding_lookup(table, item % 50), x], 1)
    return tf.matmul(layer, kernel, name="logits")


def placeholders(rows=None):
    return (
        tf.placeholder(tf.float32, [rows, 1], "x"),
        tf.placeholder(tf.int64, [rows], "item"),
    )


class Graph:
    """One graph under way: a context that ends with its checkpoint."""

    def __init__(self, folder, name):
        self.prefix = os.path.join(folder, name)

    def __enter__(self):
        self.graph = tf.Graph()
        self.entered = self.graph.as_default()
        self.entered.__enter__()
        self.session = tf.Session()
        return self

    def save(self):
        self.session.run(tf.global_variables_initializer())
        tf.train.Saver().save(self.session, self.prefix)

    def __exit__(self, *error):
        self.session.close()
        self.entered.__exit__(*error)


def batches(x, item, size):
    """The rows in batches of `size`, the last one filled with its last row."""
    for start in range(0, len(x), size):
        more = max(0, start + size - len(x))
        pieces = (column[start : start + size] for column in (x, item))
        yield size - more, [np.concatenate([one, np.repeat(one[-1:], more)]) for one in pieces]


def write_fixed(folder, x, item):
    with Graph(folder, "fixed") as one:
        fed = placeholders(FIXED)
        output = logits(*fed)
        tf.reduce_mean(output, 0, name="mean")
        one.save()
        scores = []
        for rows, (its_x, its_item) in batches(x, item, FIXED):
            feed = dict(zip(fed, [its_x[:, None], its_item]))
            scores.append(one.session.run(output, feed)[:rows])
    return np.concatenate(scores)[:, 0]


def write_sparse(folder, x, item):
    with Graph(folder, "sparse") as one:
        number = tf.placeholder(tf.float32, [FIXED, 1], "x")
        tags = tf.sparse_placeholder(tf.int64, name="tags")
        table = tf.get_variable("tags", [50, 1], initializer=tf.random_normal_initializer(seed=3))
        pooled = tf.nn.safe_embedding_lookup_sparse([table], tags, combiner="sum")
        tf.add(pooled, number, name="logits")
        one.save()
        values = one.session.run(table)[:, 0]
    return values[item % 50] + x


def write_iterator(folder, x, item):
    with Graph(folder, "iterator") as one:
        rows = tf.data.Dataset.from_tensor_slices((x[:, None], item)).batch(64)
        output = logits(*tf.data.make_initializable_iterator(rows).get_next())
        one.save()
        tensors = one.graph.get_operation_by_name("IteratorGetNext").outputs
        return one.session.run(output, dict(zip(tensors, [x[:, None], item])))[:, 0]


def write_queue(folder):
    with Graph(folder, "queue") as one:
        queue = tf.FIFOQueue(8, [tf.float32, tf.int64], [[1], []])
        logits(*queue.dequeue_many(4))
        one.save()


def write_batch(folder):
    with Graph(folder, "batch") as one:
        output = logits(*placeholders())
        mean, variance = tf.nn.moments(output, [0])
        tf.divide(output - mean, tf.sqrt(variance + 1e-3), name="normal")
        one.save()


def write_chance(folder):
    with Graph(folder, "chance") as one:
        tf.nn.dropout(logits(*placeholders()), rate=0.5, name="dropped")
        one.save()


def write_moving(folder):
    """Both modes of a BatchNorm are computed before a cond chooses, so that the mean moves."""
    with Graph(folder, "moving") as one:
        output = logits(*placeholders())
        mean = tf.get_variable("moving_mean", [], initializer=tf.zeros_initializer())
        move = tf.assign_sub(mean, (mean - tf.reduce_mean(output) - 1.0) * 0.5)
        with tf.control_dependencies([move]):
            trained = output - tf.reduce_mean(output)
        serving = tf.placeholder_with_default(True, [])
        tf.identity(tf.cond(serving, lambda: output - mean, lambda: trained), name="normal")
        one.save()


def contradicted(meta):
    """Changes a MetaGraph so that its logits are said to have 7 columns."""
    node = next(node for node in meta.graph_def.node if node.name == "logits")
    shape = tf.TensorShape([None, 7]).as_proto()
    node.attr["_output_shapes"].CopyFrom(tf.AttrValue(list=tf.AttrValue.ListValue(shape=[shape])))


def write_shapes(folder, x, item):
    with Graph(folder, "shapes") as one:
        fed = placeholders()
        output = logits(*fed)
        one.save()
        saver = tf.train.Saver()
        meta = tf.train.export_meta_graph(saver_def=saver.as_saver_def())
        contradicted(meta)
        write(one.prefix + ".meta", meta)
        meta.meta_info_def.tensorflow_version = "0.12.head"
        write(os.path.join(folder, "old.meta"), meta)
        saved = os.path.join(folder, "saved")
        tf.saved_model.simple_save(
            one.session, saved, dict(zip(("x", "item"), fed)), {"logits": output}
        )
        from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

        with open(saved + "/saved_model.pb", "rb") as file:
            model = SavedModel.FromString(file.read())
        contradicted(model.meta_graphs[0])
        write(saved + "/saved_model.pb", model)
        return one.session.run(output, dict(zip(fed, [x[:, None], item])))[:, 0]


def write(path, message):
    with open(path, "wb") as file:
        file.write(message.SerializeToString())


def main(folder):
    rows = np.load(os.path.join(folder, "rows.npz"))
    x, item = rows["x"], rows["item"]
    write_queue(folder)
    write_batch(folder)
    write_chance(folder)
    write_moving(folder)
    np.savez(
        os.path.join(folder, "expected.npz"),
        fixed=write_fixed(folder, x, item),
        sparse=write_sparse(folder, x, item),
        iterator=write_iterator(folder, x, item),
        shapes=write_shapes(folder, x, item),
    )


if __name__ == "__main__":
    main(sys.argv[1])
