"""Feature columns of every kind, as a job declares them for a canned Estimator."""

import tensorflow.compat.v1 as tf

from tests.model.zoo import log

fc = tf.feature_column
AGES = [18.0, 25.0, 33.5, 47.0, 64.0]


def age_buckets():
    return fc.bucketized_column(fc.numeric_column("age"), AGES)


def heat_buckets():
    return fc.bucketized_column(fc.numeric_column("heat"), [-1.0, 0.0, 0.1, 1.0])


def wide(vocabulary):
    """Categorical columns of every kind, with the path of the file of places."""
    return [
        age_buckets(),
        heat_buckets(),
        cities(),
        hours(),
        fc.categorical_column_with_hash_bucket("item", 30),
        fc.categorical_column_with_hash_bucket("user", 25, dtype=tf.int64),
        fc.categorical_column_with_vocabulary_list("device", [0, 1, 2, 3], dtype=tf.int64),
        places(vocabulary),
        fc.crossed_column([cities(), "item"], 35),
        *multivalent(),
    ]


def multivalent():
    """Those with several values an example, or none."""
    age_and_city = fc.crossed_column([age_buckets(), "city"], 40, hash_key=7)
    return [
        fc.categorical_column_with_hash_bucket("codes", 9, dtype=tf.int64),
        fc.categorical_column_with_vocabulary_list("words", ["red", "blue"], default_value=1),
        fc.crossed_column([age_and_city, hours(), "words"], 50, hash_key=0),
        fc.weighted_categorical_column(
            fc.categorical_column_with_hash_bucket("tags", 20), "tag_scores"
        ),
    ]


def cities():
    return fc.categorical_column_with_vocabulary_list("city", _text(log.CITIES), num_oov_buckets=2)


def hours():
    return fc.categorical_column_with_identity("hour", 24, default_value=0)


def crossed_numbers():
    """A cross with integers as they come, which no tf.train.Example can be parsed for."""
    return fc.crossed_column(["device", "item"], 35)


def places(vocabulary):
    return fc.categorical_column_with_vocabulary_file(
        "place", vocabulary, len(log.PLACES), num_oov_buckets=3
    )


def deep(vocabulary):
    """Dense columns of every kind."""
    city = fc.categorical_column_with_vocabulary_list("city", _text(log.CITIES), default_value=0)
    return [
        price(),
        fc.numeric_column("stats", shape=(3,)),
        age_buckets(),
        heat_buckets(),
        fc.indicator_column(city),
        fc.indicator_column(
            fc.categorical_column_with_vocabulary_list("words", ["red", "blue", "tall"])
        ),
        fc.indicator_column(fc.crossed_column(["device", age_buckets()], 12)),
        fc.indicator_column(fc.weighted_categorical_column(tags(), "tag_scores")),
        fc.embedding_column(
            fc.categorical_column_with_hash_bucket("user", 25, dtype=tf.int64), 5, combiner="sqrtn"
        ),
        fc.embedding_column(
            fc.crossed_column(["city", "hour"], 30), 2, combiner="mean", max_norm=0.4
        ),
        *embeddings(vocabulary),
    ]


def price():
    return fc.numeric_column("price", normalizer_fn=lambda price: (tf.log(price) - 0.1) / 1.3)


def tags():
    return fc.categorical_column_with_hash_bucket("tags", 20)


def embeddings(vocabulary):
    """Embeddings under each combiner, one with weights and one of two features."""
    items = [
        fc.categorical_column_with_identity(name, log.ITEMS)
        for name in ("item_id", "history_items")
    ]
    return [
        fc.embedding_column(tags(), 4, combiner="mean"),
        fc.embedding_column(places(vocabulary), 3, combiner="sum"),
        fc.embedding_column(
            fc.weighted_categorical_column(
                fc.categorical_column_with_identity("tag_ids", log.TAGS), "tag_scores"
            ),
            4,
            combiner="sqrtn",
        ),
        *fc.shared_embedding_columns(items, 4, combiner="mean"),
    ]


def _text(words):
    return [word.decode() for word in words]
