"""A small job trained by TensorFlow, and the rows it would go on with: python write_job.py FOLDER.

FOLDER/clicks.ckpt with its MetaGraph, weights.ckpt without the optimizers' state, and clicks.npz,
ROWS rows by column: user, item, tags (with their lengths), price, clicked, day, key.

The tables have an optimizer each: Adagrad with a rate that decays, Adagrad with another and vectors
of 6 numbers, for which FBGEMM has no kernel, Ftrl, Momentum. One has vectors of one number, one is
looked up in bags. There is a BatchNorm, and dropout.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow.compat.v1 as tf

ROWS, USERS, ITEMS, TAGS = 4096, 50, 40, 30


def rows(seed=1):
    """The columns."""
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 4, ROWS)
    user, item = draw.integers(0, USERS, ROWS), draw.integers(0, ITEMS, ROWS)
    price = (draw.random((ROWS, 1)) * 20).astype("f")
    taste = draw.normal(size=USERS)[user] + draw.normal(size=ITEMS)[item]
    return {
        "user": np.array([b"u%d" % one for one in user]),
        "item": item,
        "tags": draw.integers(0, TAGS, lengths.sum()),
        "lengths": lengths,
        "price": price,
        "clicked": (draw.random(ROWS) < 1 / (1 + np.exp(1 - taste))).astype("f"),
        "day": np.arange(ROWS) * 3 // ROWS,
        "key": np.arange(ROWS),
    }


def build():
    """(the training op, the feeds by name)"""
    step = tf.train.get_or_create_global_step()
    user = tf.placeholder(tf.string, [None], name="user")
    item = tf.placeholder(tf.int64, [None], name="item")
    tags = tf.sparse_placeholder(tf.int64, [None, None], name="tags")
    price = tf.placeholder(tf.float32, [None, 1], name="price")
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    training = tf.placeholder_with_default(False, [], name="training")
    with tf.variable_scope("model"):
        users = tf.get_variable("users", [USERS, 8])
        items = tf.get_variable("items", [ITEMS, 6])
        first = tf.get_variable("first", [ITEMS, 1])
        tagged = tf.get_variable("tags", [TAGS, 8])
    found = [
        tf.nn.embedding_lookup(users, tf.string_to_hash_bucket_fast(user, USERS)),
        tf.nn.embedding_lookup(items, item),
        tf.nn.safe_embedding_lookup_sparse(tagged, tags, combiner="sum"),
        tf.log1p(price),
    ]
    net = tf.concat(found, 1)
    net = tf.layers.batch_normalization(net, momentum=0.9, training=training, name="norm")
    net = tf.layers.dense(net, 8, tf.nn.relu, name="deep")
    net = tf.layers.dropout(net, 0.1, training=training)
    out = tf.layers.dense(net, 1, name="out")
    # Looked up last, so that the gradient of its rows is ready first; it is also that of `out`.
    logits = out + tf.nn.embedding_lookup(first, item) + 0.1 * tf.stop_gradient(out)
    logits = tf.identity(logits[:, 0], name="logits")
    loss = tf.losses.sigmoid_cross_entropy(clicked, logits)
    rate = tf.train.exponential_decay(0.2, step, 5, 0.9)
    dense = [one for one in tf.trainable_variables() if not one.op.name.startswith("model/")]
    parts = [
        (tf.train.AdagradOptimizer(rate), [users]),
        (tf.train.AdagradOptimizer(0.1), [items]),
        (tf.train.FtrlOptimizer(0.1), [first]),
        (tf.train.MomentumOptimizer(0.05, 0.9), [tagged]),
        (tf.train.AdamOptimizer(0.01), dense),
    ]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        steps = [optimizer.minimize(loss, var_list=variables) for optimizer, variables in parts]
    with tf.control_dependencies(steps):
        return step.assign_add(1).op


def fed(data, chosen):
    """What TensorFlow is fed of some rows."""
    starts = np.cumsum(data["lengths"]) - data["lengths"]
    own = [data["tags"][starts[i] : starts[i] + data["lengths"][i]] for i in chosen]
    places = [(i, j) for i, one in enumerate(own) for j in range(len(one))]
    width = max(map(len, own))
    return {
        "user:0": data["user"][chosen],
        "item:0": data["item"][chosen],
        "price:0": data["price"][chosen],
        "clicked:0": data["clicked"][chosen],
        "tags/indices:0": np.array(places).reshape(-1, 2),
        "tags/values:0": np.concatenate(own),
        "tags/shape:0": [len(own), width],
        "training:0": True,
    }


def main(folder):
    tf.disable_v2_behavior()
    tf.set_random_seed(1)
    train_op, data = build(), rows()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for k in range(3):
            session.run(train_op, fed(data, np.arange(64 * k, 64 * (k + 1))))
        tf.train.Saver().save(session, os.path.join(folder, "clicks.ckpt"))
        moving = [one for one in tf.global_variables() if "/moving_" in one.op.name]
        weights = tf.train.Saver(tf.trainable_variables() + moving)
        weights.save(session, os.path.join(folder, "weights.ckpt"))
    np.savez(os.path.join(folder, "clicks.npz"), **data)


if __name__ == "__main__":
    main(sys.argv[1])
