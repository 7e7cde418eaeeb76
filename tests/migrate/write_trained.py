"""Writes checkpoints whose optimizers a name does not tell; run as a script, see write_checkpoints.

    python write_trained.py OUT

Beside each checkpoint NAME stands NAME.npz: what TensorFlow's session says of variables and slots,
"VARIABLE" and "VARIABLE:SLOT", with the rows of a partitioned variable one after the other.
"""

import os
import sys

import numpy as np
import tensorflow as tf

if tf.__version__ >= "2":
    tf = tf.compat.v1
    tf.disable_v2_behavior()

ROWS, DIM = 31, 4
SLOTS = {"Adagrad": ["accumulator"], "Adam": ["m", "v"], "Ftrl": ["accum", "linear"]}
IDS = [1, 2, 2, 30]


class Model:
    """A table in `parts` parts, a kernel and a bias, in the variable_scope "net"."""

    def __init__(self, parts, resource):
        with tf.variable_scope("net", use_resource=resource):
            cut = tf.fixed_size_partitioner(parts) if parts else None
            self.table = tf.get_variable("user", [ROWS, DIM], partitioner=cut)
            self.kernel = tf.get_variable("kernel", [DIM, DIM])
            self.bias = tf.get_variable("bias", [DIM])
        self.parts = list(self.table) if parts else [self.table]
        found = tf.nn.embedding_lookup(self.parts, tf.constant(IDS, tf.int64), "div")
        self.loss = tf.reduce_sum(tf.square(tf.matmul(found, self.kernel) + self.bias))

    def variables(self):
        return {"net/user": self.parts, "net/kernel": [self.kernel], "net/bias": [self.bias]}

    def values(self, optimizers):
        """Of variables and slots, as tensors; optimizers: by variable."""
        found = {}
        for name, parts in self.variables().items():
            found[name] = tf.concat([tf.identity(part) for part in parts], 0)
            optimizer = optimizers[name]
            for slot in SLOTS[type(optimizer).__name__.replace("Optimizer", "")]:
                of_parts = [tf.identity(optimizer.get_slot(part, slot)) for part in parts]
                found["{}:{}".format(name, slot)] = tf.concat(of_parts, 0)
        return found


def trained(out, name, train, want, saver=None):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train)
        (saver or tf.train.Saver()).save(session, os.path.join(out, name))
        np.savez(os.path.join(out, name + ".npz"), **session.run(want))


def in_scope(out, name, optimizer, parts, resource):
    """`minimize` in the scope "net", or in a scope below: slots stand under another parent."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = Model(parts, resource)
        with tf.variable_scope("net", use_resource=resource):
            train = optimizer.minimize(model.loss)
        trained(out, name, train, model.values(dict.fromkeys(model.variables(), optimizer)))


def two_rates(out):
    """Two Adagrads of one name and two learning rates; only the training ops tell them apart."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        model = Model(0, False)
        deep, wide = tf.train.AdagradOptimizer(0.1), tf.train.AdagradOptimizer(0.02)
        gradients = tf.gradients(model.loss, [model.table, model.kernel, model.bias])
        train = tf.group(
            wide.apply_gradients([(gradients[0], model.table)]),
            deep.apply_gradients(zip(gradients[1:], [model.kernel, model.bias])),
        )
        owners = {"net/user": wide, "net/kernel": deep, "net/bias": deep}
        trained(out, "two_rates", train, model.values(owners))


def unknown_op(out):
    """A training op of Keras's, whose momentum is not TensorFlow 1's."""
    with tf.Graph().as_default():
        table = tf.get_variable("user", [ROWS, DIM], use_resource=True)
        slot = tf.get_variable("user_velocity", [ROWS, DIM], use_resource=True)
        gradient = tf.gradients(tf.reduce_sum(tf.square(table)), [table])[0]
        train = tf.raw_ops.ResourceApplyKerasMomentum(
            var=table.handle, accum=slot.handle, lr=0.1, grad=gradient, momentum=0.9
        )
        trained(out, "unknown_op", train, {"user": tf.identity(table)})


def two_optimizers(out):
    """Two optimizers with slots of one variable."""
    with tf.Graph().as_default():
        table = tf.get_variable("user", [ROWS, DIM])
        loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, IDS)))
        first, second = tf.train.AdagradOptimizer(0.1), tf.train.AdagradOptimizer(0.2)
        train = tf.group(first.minimize(loss), second.minimize(loss))
        trained(out, "two_optimizers", train, {"user": table})


def weights_alone(out):
    """A Saver of the trainable variables: the graph has slots that the checkpoint lacks."""
    with tf.Graph().as_default():
        model = Model(0, False)
        adam = tf.train.AdamOptimizer(0.1)
        train = adam.minimize(model.loss)
        saver = tf.train.Saver(tf.trainable_variables())
        want = model.values(dict.fromkeys(model.variables(), adam))
        trained(out, "weights_alone", train, want, saver)


def other_model(out):
    """A model with names of the first one's, in other shapes, and one of its own."""
    with tf.Graph().as_default():
        with tf.variable_scope("net"):
            table = tf.get_variable("item", [ROWS, DIM])
            kernel = tf.get_variable("kernel", [DIM, 7])
        loss = tf.reduce_sum(tf.matmul(tf.nn.embedding_lookup(table, IDS), kernel))
        trained(out, "other_model", tf.train.AdagradOptimizer(0.1).minimize(loss), {"item": table})


def other_names(out):
    """A model that has the first one's kernel and bias, and another table."""
    with tf.Graph().as_default():
        with tf.variable_scope("net"):
            table = tf.get_variable("item", [ROWS, DIM])
            kernel, bias = tf.get_variable("kernel", [DIM, DIM]), tf.get_variable("bias", [DIM])
        loss = tf.reduce_sum(tf.matmul(tf.nn.embedding_lookup(table, IDS), kernel) + bias)
        trained(out, "other_names", tf.train.AdagradOptimizer(0.1).minimize(loss), {"item": table})


def for_evaluation(out):
    """The graph of the first model without an optimizer."""
    with tf.Graph().as_default():
        model = Model(0, False)
        trained(out, "for_evaluation", model.loss, {"loss": model.loss})


def dense(out):
    """No table at all."""
    with tf.Graph().as_default():
        kernel = tf.get_variable("kernel", [DIM, DIM])
        loss = tf.reduce_sum(tf.square(tf.matmul(tf.ones([2, DIM]), kernel)))
        optimizer = tf.train.AdamOptimizer(0.1)
        train = optimizer.minimize(loss)
        want = {"kernel": kernel, "kernel:m": optimizer.get_slot(kernel, "m")}
        trained(out, "dense", train, want)


def exported(out):
    """A SavedModel by tf.saved_model.simple_save: a graph to serve, without an optimizer."""
    with tf.Graph().as_default():
        tf.set_random_seed(1)
        with tf.variable_scope("net"):
            table = tf.get_variable("user", [ROWS, DIM], partitioner=tf.fixed_size_partitioner(3))
            kernel = tf.get_variable("kernel", [DIM, 2])
        ids = tf.placeholder(tf.int64, [None])
        score = tf.matmul(tf.nn.embedding_lookup(list(table), ids, "mod"), kernel)
        every = tf.nn.embedding_lookup(list(table), np.arange(ROWS, dtype=np.int64), "mod")
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            folder = os.path.join(out, "exported")
            tf.saved_model.simple_save(session, folder, {"ids": ids}, {"score": score})
            np.savez(folder + ".npz", **session.run({"net/user": every, "net/kernel": kernel}))


def canned(out):
    """A canned linear estimator of TensorFlow 1, its weights in one part and in three."""
    column = tf.feature_column.categorical_column_with_identity("x", ROWS)
    for parts in (1, 3):
        folder = os.path.join(out, "canned_{}".format(parts))
        estimator = tf.estimator.LinearClassifier(
            [column], model_dir=folder, partitioner=tf.fixed_size_partitioner(parts)
        )
        data = {"x": [[one] for one in IDS]}, [[0], [1], [1], [0]]
        estimator.train(lambda data=data: tf.data.Dataset.from_tensors(data).repeat(3))
        with tf.Graph().as_default(), tf.Session() as session:
            prefix = tf.train.latest_checkpoint(folder)
            tf.train.import_meta_graph(prefix + ".meta").restore(session, prefix)
            parts_of = {}
            for one in sorted(tf.global_variables(), key=lambda one: one.op.name):
                name, part, slot = one.op.name.partition("/part_")
                if part:  # linear/w/part_0, linear/linear/w/part_0/Ftrl
                    whole = name.replace("linear/linear/", "linear/") + slot[1:]
                    parts_of.setdefault(whole, []).append(tf.identity(one))
            want = {name: tf.concat(parts, 0) for name, parts in parts_of.items()}
            np.savez(folder + ".npz", **session.run(want))


def main(out):
    train = tf.train
    for kind, resource in (("ref", False), ("resource", True)):
        for parts in (0, 3):
            name = "{}_{}_{}".format("adagrad", kind, parts)
            in_scope(out, name, train.AdagradOptimizer(0.1), parts, resource)
            in_scope(
                out, name.replace("adagrad", "adam"), train.AdamOptimizer(0.1), parts, resource
            )
    in_scope(out, "ftrl_ref_3", train.FtrlOptimizer(0.1), 3, False)
    two_rates(out)
    unknown_op(out)
    two_optimizers(out)
    weights_alone(out)
    other_model(out)
    other_names(out)
    for_evaluation(out)
    dense(out)
    exported(out)
    if hasattr(tf, "contrib"):
        canned(out)


if __name__ == "__main__":
    main(sys.argv[1])
