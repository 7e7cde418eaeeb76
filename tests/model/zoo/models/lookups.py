"""Embedding look-ups in every form, and words looked up in tables by hand."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log
from tests.model.zoo.model import Model, Trained

SIZE = 4


def lookups(mode):
    """Tables in parts, div and mod; bags with each combiner, weighted and not; FTRL."""
    return _lookups(False)


def lookups_resource(mode):
    """The same with resource variables."""
    return _lookups(True)


def _lookups(resource):
    user = tf.placeholder(tf.int64, [None], name="user")
    item = tf.placeholder(tf.int64, [None], name="item")
    tags = tf.sparse_placeholder(tf.int64, name="tags")
    weights = tf.sparse_placeholder(tf.float32, name="weights")
    history = tf.placeholder(tf.int64, [None, log.HISTORY], name="history")
    label = tf.placeholder(tf.float32, [None], name="label")
    with tf.variable_scope("lookups", use_resource=resource):
        users = tf.get_variable(
            "users", [log.USERS, SIZE], partitioner=tf.fixed_size_partitioner(3)
        )
        items = [
            tf.get_variable("items_%d" % part, [(log.ITEMS + 3 - part) // 4, SIZE])
            for part in range(4)
        ]
        words = tf.get_variable(
            "words",
            [log.TAGS, SIZE],
            partitioner=tf.min_max_variable_partitioner(2, min_slice_size=8),
        )
        plain = tf.get_variable("plain", [log.TAGS, SIZE])
        found = [
            tf.nn.embedding_lookup(users, user, partition_strategy="div"),
            tf.nn.embedding_lookup(items, item, partition_strategy="mod", max_norm=1.0),
            _mean_of_history(items, history),
        ]
        for combiner in ("sum", "mean", "sqrtn"):
            bag = tf.nn.embedding_lookup_sparse
            found.append(bag(plain, tags, None, combiner=combiner))
            found.append(bag(words, tags, weights, "div", combiner=combiner))
        net = tf.layers.dense(tf.concat(found, 1), 6, activation=tf.tanh)
        logits = tf.reduce_sum(net, -1)
    loss = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    optimizer = tf.train.FtrlOptimizer(
        0.05,
        learning_rate_power=-0.6,
        initial_accumulator_value=0.2,
        l2_shrinkage_regularization_strength=0.01,
    )
    return Model(
        inputs={
            "user": user,
            "item_id": item,
            "tag_ids_filled": tags,
            "tag_weights_filled": weights,
            "history": history,
        },
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": 1.0 / (1.0 + tf.exp(-logits))},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )


def _mean_of_history(items, history):
    """0 fills the lists: the mean of the others, zeros where there is none."""
    mask = tf.cast(tf.greater(history, 0), tf.float32)
    total = tf.reduce_sum(tf.nn.embedding_lookup(items, history) * mask[:, :, tf.newaxis], 1)
    return total / tf.maximum(tf.reduce_sum(mask, 1, keepdims=True), 1.0)


def words(mode):
    """Text split into words, vocabularies in tables, a one-hot, ids made unique; Adam."""
    text = tf.placeholder(tf.string, [None], name="text")
    city = tf.placeholder(tf.string, [None], name="city")
    hour = tf.placeholder(tf.string, [None], name="hour")
    item = tf.placeholder(tf.int64, [None], name="item")
    label = tf.placeholder(tf.float32, [None], name="label")
    tokens = tf.string_split(text, " ")
    tag_table = tf.lookup.StaticVocabularyTable(
        tf.lookup.KeyValueTensorInitializer(
            ["tag%d" % tag for tag in range(20)], tf.range(20, dtype=tf.int64)
        ),
        num_oov_buckets=4,
    )
    city_table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            [each.decode() for each in log.CITIES], list(range(len(log.CITIES)))
        ),
        -1,
    )
    with tf.variable_scope("words"):
        tags = tf.get_variable("tags", [24, SIZE])
        items = tf.get_variable("items", [log.ITEMS, SIZE])
        ids = tf.SparseTensor(tokens.indices, tag_table.lookup(tokens.values), tokens.dense_shape)
        bag = tf.nn.safe_embedding_lookup_sparse([tags], ids, combiner="mean")
        cities = tf.one_hot(city_table.lookup(city), len(log.CITIES), on_value=1.0)
        hours = tf.string_to_number(hour, tf.float32) / 24.0
        unique, places = tf.unique(item)
        of_items = tf.gather(tf.nn.embedding_lookup(items, unique), places)
        net = tf.concat([bag, cities, tf.expand_dims(hours, 1), of_items], 1)
        net = tf.layers.dense(net, 8, activation=tf.nn.relu)
        logits = tf.layers.dense(net, 1)
    loss = tf.losses.sigmoid_cross_entropy(tf.expand_dims(label, 1), logits)
    optimizer = tf.train.AdamOptimizer(0.02, epsilon=1e-3)
    return Model(
        inputs={
            "tag_text": text,
            "city": city,
            "hour_text": hour,
            "item_id": item,
        },
        labels={"clicked": label},
        outputs={"logits": logits, "probabilities": tf.sigmoid(logits)},
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_or_create_global_step()),
        optimizers=[Trained(optimizer, tf.trainable_variables())],
    )
