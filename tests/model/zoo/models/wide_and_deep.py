"""Wide & Deep by hand: hashed words and a cross on the wide side, embeddings on the deep side."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained, keep_prob, phase

BUCKETS = 64


def wide_and_deep(mode):
    """FTRL for the wide side and Adagrad for the deep one; dropout by a fed keep_prob."""
    return _wide_and_deep(_normalized)


def wide_and_deep_functional(mode):
    """The same without BatchNorm, its dropout in a tf.cond; built with functional=True."""
    return _wide_and_deep(_conditional)


def _wide_and_deep(hidden):
    user = tf.placeholder(tf.int64, [None], name="user")
    item = tf.placeholder(tf.int32, [None], name="item_id")
    city = tf.placeholder(tf.string, [None], name="city")
    hour = tf.placeholder(tf.int64, [None], name="hour")
    age = tf.placeholder(tf.float32, [None], name="age")
    label = tf.placeholder(tf.float32, [None], name="label")
    training = tf.placeholder(tf.bool, [], name="training")
    keep = tf.placeholder(tf.float32, [], name="keep_prob")
    wide = _wide(city, hour)
    deep = _deep(user, item, age, lambda net: hidden(net, training, keep))
    logits = tf.add(wide, deep, name="logits")
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    step = tf.train.get_or_create_global_step()
    ftrl = tf.train.FtrlOptimizer(
        0.1, l1_regularization_strength=0.001, l2_regularization_strength=0.01
    )
    adagrad = tf.train.AdagradOptimizer(0.05)
    sides = [tf.trainable_variables(scope) for scope in ("wide/", "deep/")]
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = tf.group(
            ftrl.minimize(loss, var_list=sides[0]),
            adagrad.minimize(loss, global_step=step, var_list=sides[1]),
        )
    return Model(
        inputs={"user": user, "item_id": item, "city": city, "hour": hour, "age": age},
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits, name="probabilities")},
        loss=loss,
        train_op=train_op,
        optimizers=[Trained(ftrl, sides[0]), Trained(adagrad, sides[1])],
        flags=(phase(training), keep_prob(keep, 0.8)),
    )


def _wide(city, hour):
    with tf.variable_scope("wide"):
        crossed = tf.string_join([city, tf.as_string(hour)], separator="_X_")
        buckets = tf.stack(
            [tf.string_to_hash_bucket_fast(each, BUCKETS) for each in (city, crossed)], axis=1
        )
        weights = tf.get_variable("weights", [BUCKETS, 1], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        return tf.reduce_sum(tf.gather(weights, buckets), axis=[1, 2]) + bias


def _normalized(net, training, keep):
    net = tf.layers.batch_normalization(net, training=training, momentum=0.9)
    return tf.nn.dropout(tf.nn.relu(net), keep_prob=keep)


def _conditional(net, training, keep):
    net = tf.nn.relu(net)
    return tf.cond(training, lambda: tf.nn.dropout(net, keep_prob=keep), lambda: net)


def _deep(user, item, age, hidden):
    with tf.variable_scope("deep"):
        users = tf.get_variable("users", [log.USERS, 6])
        items = tf.get_variable("items", [log.ITEMS, 6])
        net = tf.concat(
            [
                tf.nn.embedding_lookup(users, user),
                tf.nn.embedding_lookup(items, item),
                tf.expand_dims(tf.log(age + 1.0), -1),
            ],
            axis=1,
        )
        for width in (16, 8):
            net = hidden(tf.layers.dense(net, width))
        return tf.squeeze(tf.layers.dense(net, 1), axis=1)
