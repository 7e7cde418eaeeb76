"""Explicit feature crosses: DCN's cross layers, xDeepFM's compressed interaction network."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained, phase

SIZE = 4


def dcn(mode):
    """Fed by an iterator of the log, resource variables, Momentum with Nesterov, clipping."""
    rows = log.draw(160, seed=1)
    names = ["item", "city", "user", "age", "stats", "clicked"]
    batches = tf.data.Dataset.from_tensor_slices({name: rows[name] for name in names})
    batch = tf.data.make_one_shot_iterator(
        batches.shuffle(64, seed=1).repeat().batch(32)
    ).get_next()
    with tf.variable_scope("dcn", use_resource=True):
        x0 = _dcn_inputs(batch)
        width = x0.shape[-1].value if hasattr(x0.shape[-1], "value") else x0.shape[-1]
        crossed = x0
        for layer in range(3):
            w = tf.get_variable("cross_w_%d" % layer, [width, 1])
            b = tf.get_variable("cross_b_%d" % layer, [width], initializer=tf.zeros_initializer())
            crossed = x0 * tf.matmul(crossed, w) + b + crossed
        deep = tf.layers.dense(x0, 16, activation=tf.nn.relu, name="deep_1")
        deep = tf.layers.dense(deep, 8, activation=tf.nn.elu, name="deep_2")
        logits = tf.layers.dense(tf.concat([crossed, deep], -1), 1, name="logits")[:, 0]
    loss = tf.losses.sigmoid_cross_entropy(batch["clicked"], logits)
    step = tf.train.get_or_create_global_step()
    rate = tf.train.polynomial_decay(0.05, step, 40, end_learning_rate=0.005, power=2.0)
    optimizer = tf.train.MomentumOptimizer(rate, 0.9, use_nesterov=True)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, 0.1)
    return Model(
        inputs={name: batch[name] for name in names[:-1]},
        labels={"clicked": batch["clicked"]},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.apply_gradients(zip(clipped, variables), global_step=step),
        optimizers=[Trained(optimizer, variables)],
    )


def _dcn_inputs(batch):
    embedded = []
    for name in ("item", "city"):
        table = tf.get_variable(name + "_embedding", [20, SIZE])
        embedded.append(
            tf.nn.embedding_lookup(table, tf.strings.to_hash_bucket_fast(batch[name], 20))
        )
    table = tf.get_variable("user_embedding", [16, SIZE])
    embedded.append(tf.nn.embedding_lookup(table, tf.mod(batch["user"], 16)))
    age = tf.clip_by_value(batch["age"] / 100.0, 0.15, 0.7)
    return tf.concat(embedded + [tf.reshape(age, [-1, 1]), batch["stats"]], axis=1)


def xdeepfm(mode):
    """CIN with tf.split, matmul and conv1d; RMSProp, centered; dropout by a fed phase."""
    index = tf.placeholder(tf.int64, [None, log.FIELDS], name="index")
    label = tf.placeholder(tf.float32, [None], name="label")
    training = tf.placeholder_with_default(False, [], name="is_training")
    with tf.variable_scope("xdeepfm"):
        table = tf.get_variable("embedding", [10 * log.FIELDS, SIZE])
        linear = tf.get_variable("linear", [10 * log.FIELDS])
        embedded = tf.gather(table, index)
        cin = _cin(embedded, [6, 4])
        deep = tf.layers.flatten(embedded)
        for width in (12, 6):
            deep = tf.layers.dense(deep, width, kernel_regularizer=_l2)
            deep = tf.nn.leaky_relu(deep, alpha=0.1)
            deep = tf.layers.dropout(deep, rate=0.3, training=training)
        logits = tf.layers.dense(tf.concat([cin, deep], 1), 1)
        logits = tf.squeeze(logits, [1]) + tf.reduce_sum(tf.gather(linear, index), -1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    loss += tf.losses.get_regularization_loss()
    optimizer = tf.train.RMSPropOptimizer(0.005, decay=0.9, momentum=0.5, centered=True)
    return Model(
        inputs={"index": index},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
        flags=(phase(training)._replace(steps=False),),  # a dropout's phase, and nothing else's
    )


def _l2(kernel):
    return 0.001 * tf.nn.l2_loss(kernel)


def _cin(embedded, widths):
    fields, sums = [log.FIELDS], []
    hidden = embedded
    first = tf.split(embedded, SIZE * [1], 2)
    for layer, width in enumerate(widths):
        split = tf.split(hidden, SIZE * [1], 2)
        product = tf.matmul(first, split, transpose_b=True)
        product = tf.reshape(product, [SIZE, -1, fields[0] * fields[-1]])
        product = tf.transpose(product, perm=[1, 0, 2])
        filters = tf.get_variable("f_%d" % layer, [1, fields[-1] * fields[0], width])
        hidden = tf.nn.conv1d(product, filters=filters, stride=1, padding="VALID")
        bias = tf.get_variable("f_b%d" % layer, [width], initializer=tf.zeros_initializer())
        hidden = tf.nn.relu(tf.nn.bias_add(hidden, bias))
        hidden = tf.transpose(hidden, perm=[0, 2, 1])
        fields.append(width)
        sums.append(tf.reduce_sum(hidden, -1))
    return tf.concat(sums, axis=1)
