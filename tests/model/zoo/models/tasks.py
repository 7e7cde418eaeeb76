"""Several tasks at once: MMoE with Keras layers, ESMM with safe look-ups."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained, phase

EXPERTS, WIDTH, SIZE = 3, 8, 4


def mmoe(mode):
    """Keras layers in a graph, the phase of Keras for BatchNorm and dropout; Adam."""
    layers, backend = tf.keras.layers, tf.keras.backend
    user = tf.placeholder(tf.int32, [None], name="user_id")
    item = tf.placeholder(tf.int32, [None], name="item_id")
    stats = tf.placeholder(tf.float32, [None, 3], name="stats")
    clicked = tf.placeholder(tf.float32, [None], name="clicked")
    bought = tf.placeholder(tf.float32, [None], name="bought")
    learning_phase = backend.learning_phase()
    users, items = layers.Embedding(log.USERS, SIZE), layers.Embedding(log.ITEMS, SIZE)
    net = layers.Concatenate()([users(user), items(item), stats])
    norm = layers.BatchNormalization(momentum=0.9)
    net = norm(net, training=learning_phase)
    net = layers.Dropout(mode.rate(0.25))(net, training=learning_phase)
    experts = tf.stack([layers.Dense(WIDTH, activation="relu")(net) for _ in range(EXPERTS)], 1)
    logits = {}
    for task in ("click", "buy"):
        gate = layers.Dense(EXPERTS, activation="softmax", use_bias=False, name=task + "_gate")(net)
        mixed = tf.einsum("be,bew->bw", gate, experts)
        tower = layers.Dense(6, activation="selu", name=task + "_tower")(mixed)
        logits[task] = layers.Dense(1, name=task + "_logits")(tower)[:, 0]
    losses = [
        tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits[task]))
        for task, label in (("click", clicked), ("buy", bought))
    ]
    loss = tf.add_n(losses)
    optimizer = tf.train.AdamOptimizer(0.01)
    with tf.control_dependencies(norm.updates or tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_or_create_global_step())
    return Model(
        inputs={"user": user, "item_id": item, "stats": stats},
        labels={"clicked": clicked, "bought": bought},
        outputs=_outputs(logits),
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=(phase(learning_phase),),
    )


def _outputs(logits):
    outputs = {task + "_logits": each for task, each in logits.items()}
    outputs.update((task + "_probabilities", tf.sigmoid(each)) for task, each in logits.items())
    return outputs


def esmm(mode):
    """Towers for clicks and conversions over shared embeddings; ProximalAdagrad."""
    user = tf.placeholder(tf.int64, [None], name="user")
    tags = tf.sparse_placeholder(tf.int64, [None, None], name="tags")
    scores = tf.sparse_placeholder(tf.float32, [None, None], name="tag_scores")
    device = tf.placeholder(tf.int64, [None, 1], name="device")
    clicked = tf.placeholder(tf.float32, [None, 1], name="click")
    bought = tf.placeholder(tf.float32, [None, 1], name="buy")
    with tf.variable_scope("embedding"):
        users = tf.get_variable("user", [log.USERS, SIZE])
        words = tf.get_variable("tag", [log.TAGS, SIZE])
        devices = tf.get_variable("device", [8, 2])
    safe = tf.nn.safe_embedding_lookup_sparse
    not_missing = tf.where(tf.not_equal(device, -1))
    devices_given = tf.SparseTensor(
        not_missing, tf.gather_nd(device, not_missing), tf.shape(device, out_type=tf.int64)
    )
    shared = tf.concat(
        [
            tf.nn.embedding_lookup(users, user),
            safe([words], tags, scores, combiner="sqrtn"),
            safe([words], tags, combiner="sum"),
            safe([devices], devices_given, combiner="mean", default_id=7),
        ],
        axis=-1,
    )
    logits = {}
    for task in ("ctr", "cvr"):
        with tf.variable_scope(task):
            net = tf.layers.dense(shared, 10, activation=tf.nn.relu6)
            net = tf.layers.dense(net, 5, activation=tf.nn.softplus)
            logits[task] = tf.layers.dense(net, 1)
    ctr, cvr = (tf.sigmoid(logits[task], name=task + "_p") for task in ("ctr", "cvr"))
    both = tf.multiply(ctr, cvr, name="ctcvr")
    loss = tf.losses.log_loss(clicked, ctr) + tf.losses.log_loss(bought, both)
    optimizer = tf.train.ProximalAdagradOptimizer(
        0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01
    )
    return Model(
        inputs={"user": user, "tag_ids": tags, "tag_scores": scores, "device_column": device},
        labels={"clicked_column": clicked, "bought_column": bought},
        outputs=dict(_outputs(logits), ctcvr=both),
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )
