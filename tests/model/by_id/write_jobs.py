"""Click models over TFRA's hash tables, trained and then stepped on by TFRA itself.

    python write_jobs.py FOLDER

Of each job FOLDER/JOB/model.ckpt with its MetaGraph, and recorded.npz: rows, what the model gives
for them, the losses of the steps that follow the checkpoint, and ids and rows of all tables, with
the dense variables, after them. FOLDER/served is a SavedModel, whose initializer gives zeros.
"""

import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import variable_scope
from tensorflow_recommenders_addons import dynamic_embedding as de
from tensorflow_recommenders_addons.dynamic_embedding.python.ops import tf_save_restore_patch

tf.disable_v2_behavior()

ROWS, STEPS, SIZE = 256, 6, 32
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.25),
    "adam": lambda: tf.train.AdamOptimizer(0.05),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01),
}
USERS = np.array([-4, -3, 0, 1, 2, 2**40, 2**62 - 1])


def rows(seed, news):
    """Ids repeat, and some are negative; news: ids that no row has had before."""
    random = np.random.RandomState(seed)
    user = random.choice([*USERS, *news], ROWS).astype(np.int64)
    items = random.choice([5, 6, 7, *news], (ROWS, 3)).astype(np.int64)
    clicked = (random.rand(ROWS) < 0.2 + 0.6 * (user % 3 == 0)).astype(np.float32)
    return {"user": user, "items": items, "clicked": clicked}


def unique(table, ids, name):
    return de.embedding_lookup_unique(table, ids, name=name, return_trainable=True)[0]


def plain(table, ids, name):
    return de.embedding_lookup(table, ids, name=name, return_trainable=True)[0]


def by_hand(table, ids, name):
    ids, places = tf.unique(tf.reshape(ids, [-1]))
    return tf.gather(plain(table, ids, name), places)


def twice(table, ids, name):
    return unique(table, ids, name) + unique(table, ids + 1, name + "_again")


def clipped(table, ids, name):
    ids, places = tf.unique(ids)
    options = {"max_norm": 1.0, "name": name, "return_trainable": True}
    return tf.gather(de.embedding_lookup(table, ids, **options)[0], places)


def bags(table, ids, name):
    sparse = tf.sparse.from_dense(ids)
    options = {"combiner": "sum", "name": name, "return_trainable": True}
    return de.embedding_lookup_sparse(table, sparse, None, **options)[0]


def safe_bags(table, ids, name):
    """Some of which are empty."""
    sparse = tf.sparse.from_dense(tf.where(ids > 5, ids, tf.zeros_like(ids)))
    options = {"combiner": "mean", "name": name, "return_trainable": True}
    return de.safe_embedding_lookup_sparse(table, sparse, None, **options)[0]


def build(
    optimizer,
    look_up=unique,
    of_items=None,
    shards=2,
    initializer=None,
    wrap=lambda inner: inner,
    saver=None,
):
    tf.set_random_seed(1)
    user = tf.placeholder(tf.int64, [None], name="user")
    items = tf.placeholder(tf.int64, [None, 3], name="items")
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    options = {"devices": ["/CPU:0"] * shards, "init_size": 64}
    options["kv_creator"] = de.CuckooHashTableCreator(saver=saver)
    options["initializer"] = tf.constant_initializer(0.5) if initializer is None else initializer
    with tf.variable_scope("deep"):
        users = de.get_variable("users", dim=4, **options)
        things = de.get_variable("items", dim=2, **options)
    found = (of_items or look_up)(things, items, "look_up_items")
    found = tf.reshape(found, [-1, 2 if of_items else 6])
    net = tf.concat([look_up(users, user, "look_up_users"), found], 1)
    logits = tf.reshape(tf.layers.dense(net, 1, name="out"), [-1], name="logits")
    loss = tf.losses.sigmoid_cross_entropy(clicked, logits)
    step = tf.train.get_or_create_global_step()
    train = wrap(de.DynamicEmbeddingOptimizer(optimizer)).minimize(loss, step)
    return {"user": user, "items": items, "clicked": clicked}, logits, loss, train


def tfras_saver():
    """With which FileSystemSaver writes its files."""
    known = variable_scope._get_default_variable_store()._vars.values()
    tables = [each for each in known if isinstance(each, de.Variable)]
    return tf_save_restore_patch._DynamicEmbeddingSaver(tf.global_variables() + tables)


def batch(of, number):
    start = number * SIZE % ROWS
    return {name: values[start : start + SIZE] for name, values in of.items()}


def write(folder, optimizer, **more):
    os.makedirs(folder)
    with tf.Graph().as_default(), tf.Session() as session:
        fed, logits, loss, train = build(optimizer(), **more)
        exports = [
            op for op in tf.get_default_graph().get_operations() if op.type.endswith("TableExport")
        ]
        saver = tfras_saver() if "saver" in more else tf.train.Saver()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])

        def feed(given):
            return {fed[name]: values for name, values in given.items()}

        before = rows(0, [])
        for number in range(4):
            session.run(train, feed(batch(before, number)))
        saver.save(session, os.path.join(folder, "model.ckpt"))
        after = rows(1, [11, 12, -13])
        recorded = {"before/" + name: values for name, values in before.items()}
        recorded.update(("after/" + name, values) for name, values in after.items())
        recorded["logits"] = session.run(logits, feed(before))
        recorded["losses"] = [
            session.run([loss, train], feed(batch(after, number)))[0] for number in range(STEPS)
        ]
        tables = {op.inputs[0].op.name: op.outputs for op in exports}
        dense = {variable.op.name: variable for variable in tf.global_variables()}
        tables, dense = session.run((tables, dense))
        for name, (ids, values) in tables.items():
            recorded["ids/" + name], recorded["rows/" + name] = ids, values
        recorded.update(("dense/" + name, value) for name, value in dense.items())
        np.savez(os.path.join(folder, "recorded.npz"), **recorded)


def serve(folder, trained):
    """A graph of its own, as an Estimator exports one."""
    with tf.Graph().as_default(), tf.Session() as session:
        user = tf.placeholder(tf.int64, [None], name="user")
        options = {"devices": ["/CPU:0"] * 2, "initializer": tf.zeros_initializer()}
        with tf.variable_scope("deep"):
            users = de.get_variable("users", dim=4, **options)
        sums = tf.reduce_sum(by_hand(users, user, "look_up_users"), 1, name="sums")
        session.run(tf.local_variables_initializer())
        tf.train.Saver().restore(session, trained)
        tf.saved_model.simple_save(session, folder, {"user": user}, {"sums": sums})
        ids = np.array([-4, 0, 99, 1])
        np.savez(folder + ".npz", user=ids, sums=session.run(sums, {user: ids}))


def jobs():
    """{name: (a function that makes the optimizer, more arguments of `build`)}"""
    adagrad, adam = OPTIMIZERS["adagrad"], OPTIMIZERS["adam"]
    drawn = tf.random_normal_initializer(0.0, 0.1)
    return {
        **{name: (make, {}) for name, make in OPTIMIZERS.items()},
        "drawn": (adam, {"initializer": drawn}),
        "one_shard": (adagrad, {"shards": 1, "look_up": by_hand, "initializer": drawn}),
        "three_shards": (adagrad, {"shards": 3}),
        "sparse": (adagrad, {"of_items": bags}),
        "safe": (adagrad, {"of_items": safe_bags}),
        "plain": (adagrad, {"look_up": plain, "of_items": bags}),
        "twice": (adagrad, {"look_up": twice, "of_items": bags}),
        "in_files": (adagrad, {"saver": de.FileSystemSaver()}),
        "clipped": (adagrad, {"look_up": clipped, "of_items": bags}),
    }


def main(folder):
    for name, (optimizer, more) in jobs().items():
        write(os.path.join(folder, name), optimizer, **more)
    serve(os.path.join(folder, "served"), os.path.join(folder, "adagrad", "model.ckpt"))


if __name__ == "__main__":
    main(sys.argv[1])
