"""How vectors come from tables."""

import functools

from semisync.common.compat import tf
from tests.forms import form as forms
from tests.forms.job import SIZE, WORDS

form = forms.of("Look-up", "vectors")
columns = tf.feature_column
identity = columns.categorical_column_with_identity
word_list = columns.categorical_column_with_vocabulary_list


def table(rows=WORDS, parts=1, name="table"):
    partitioner = tf.fixed_size_partitioner(parts) if parts > 1 else None
    return tf.get_variable(name, [rows, SIZE], partitioner=partitioner)


@form("`tf.gather`")
def gather(job, _):
    return tf.gather(table(), job.ids())


@form("`tf.gather`, resource variable", resource=True)
def resource_gather(job, _):
    return tf.gather(table(), job.ids())


@form("a one-hot row times the table")
def one_hot(job, _):
    return tf.matmul(tf.one_hot(job.ids(), WORDS), table())


def looked_up(job, _, parts=1, **options):
    return tf.nn.embedding_lookup(table(parts=parts), job.ids(), **options)


form("`embedding_lookup`, partitioned, `mod`")(
    functools.partial(looked_up, parts=3, partition_strategy="mod")
)
form("`embedding_lookup`, partitioned, `div`")(
    functools.partial(looked_up, parts=3, partition_strategy="div")
)
form("`embedding_lookup` with `max_norm`")(functools.partial(looked_up, max_norm=0.3))


@form("`embedding_lookup` of a list of tables made one by one")
def listed(job, _):
    tables = [table(10, name="part_{}".format(k)) for k in range(2)]
    return tf.nn.embedding_lookup(tables, job.ids(), partition_strategy="mod")


@form("one table looked up twice")
def shared(job, _):
    found = table()
    both = [tf.nn.embedding_lookup(found, job.ids(name)) for name in ("ids", "others")]
    return tf.concat([both[0], both[0] * both[1]], 1)


@form("a history of ids, summed with a mask")
def masked(job, _):
    ids = job.ids("history", (3,))
    there = tf.expand_dims(tf.cast(ids > 0, tf.float32), 2)
    return tf.reduce_sum(tf.nn.embedding_lookup(table(), ids) * there, 1)


@form("ids hashed by `tf.string_to_hash_bucket_fast`")
def hashed(job, _):
    ids = tf.string_to_hash_bucket_fast(job.words(), WORDS)
    return tf.nn.embedding_lookup(table(), ids)


@form("words by a hash table (`index_table_from_tensor`)")
def vocabulary(job, _):
    from tensorflow.python.ops import lookup_ops

    words = lookup_ops.index_table_from_tensor([b"a", b"b", b"c"], num_oov_buckets=2)
    return tf.nn.embedding_lookup(table(5), words.lookup(job.words()))


@form("a row for padding set to zero (`tf.concat` before the table)")
def padded(job, _):
    rows = tf.concat([tf.zeros([1, SIZE]), table()], 0)
    return tf.nn.embedding_lookup(rows, job.ids() + 1)


@form("a table scaled before the look-up")
def scaled(job, _):
    return tf.nn.embedding_lookup(table() * 2.0, job.ids())


@form("the look-up behind `tf.stop_gradient`")
def stopped(job, _):
    return tf.concat(
        [
            tf.stop_gradient(tf.nn.embedding_lookup(table(), job.ids())),
            tf.nn.embedding_lookup(table(name="other"), job.again("ids")),
        ],
        1,
    )


def sparse(job, _, safe=False, weighted=False, parts=1, **options):
    bags = job.bags(least=0 if safe else 1, weighted=weighted)
    ids, weights = bags if weighted else (bags, None)
    look_up = tf.nn.safe_embedding_lookup_sparse if safe else tf.nn.embedding_lookup_sparse
    found = look_up(table(parts=parts), ids, weights, **options)
    return tf.reshape(found, [-1, SIZE])


for combiner in ("sum", "mean", "sqrtn"):
    form("`embedding_lookup_sparse`, {}".format(combiner))(
        functools.partial(sparse, combiner=combiner)
    )
form("`embedding_lookup_sparse`, mean, weights, resource variables", resource=True)(
    functools.partial(sparse, combiner="mean", weighted=True)
)
form("`safe_embedding_lookup_sparse`, mean")(functools.partial(sparse, combiner="mean", safe=True))
form("`safe_embedding_lookup_sparse`, partitioned, weights")(
    functools.partial(sparse, safe=True, weighted=True, parts=2, combiner="mean")
)
form("`embedding_lookup_sparse` with `max_norm`")(
    functools.partial(sparse, combiner="sum", max_norm=0.3)
)


def embedding(column, **options):
    return columns.embedding_column(column, SIZE, **options)


def of_columns(words, make, feed):
    @form("feature columns: " + words)
    def build(job, _):
        return columns.input_layer(feed(job), make())


BUCKETS = [-1.0, 0.0, 2.0]
of_columns(
    "embedding of identity",
    lambda: [embedding(identity("ids", WORDS))],
    lambda job: {"ids": job.ids()},
)
of_columns(
    "embedding of hashed words, sqrtn",
    lambda: [embedding(columns.categorical_column_with_hash_bucket("bags", 9), combiner="sqrtn")],
    lambda job: {"bags": job.bags(least=0, words=[b"a", b"b", b"c"])},
)
of_columns(
    "embedding of a vocabulary",
    lambda: [embedding(word_list("words", ["a", "b"], None, -1, 2))],
    lambda job: {"words": job.words()},
)
of_columns(
    "embedding with `max_norm`",
    lambda: [embedding(identity("ids", WORDS), max_norm=0.3)],
    lambda job: {"ids": job.ids()},
)
of_columns(
    "shared embeddings",
    lambda: columns.shared_embedding_columns(
        [identity(name, WORDS) for name in ("ids", "others")], SIZE
    ),
    lambda job: {name: job.ids(name) for name in ("ids", "others")},
)
of_columns(
    "indicator of a vocabulary",
    lambda: [columns.indicator_column(word_list("words", ["a", "b", "c"]))],
    lambda job: {"words": job.words(among=(b"a", b"b", b"c", b"x"))},
)
of_columns(
    "bucketized numbers, embedded",
    lambda: [embedding(columns.bucketized_column(columns.numeric_column("heat"), BUCKETS))],
    lambda job: {"heat": job.numbers("heat", (1,))},
)
of_columns(
    "crossed words, embedded",
    lambda: [embedding(columns.crossed_column(["words", "codes"], 13))],
    lambda job: {"words": job.words(), "codes": job.ids("codes")},
)
of_columns(
    "weighted ids, embedded",
    lambda: [embedding(columns.weighted_categorical_column(identity("bags", WORDS), "weights"))],
    lambda job: dict(zip(("bags", "weights"), job.bags(weighted=True))),
)
of_columns(
    "a numeric column with a normaliser",
    lambda: [
        columns.numeric_column("heat", [1], normalizer_fn=lambda x: (x - 1.0) / 2.0),
        embedding(identity("ids", WORDS)),
    ],
    lambda job: {"heat": job.numbers("heat", (1,)), "ids": job.ids()},
)


@form("feature columns: `linear_model`")
def linear_model(job, _):
    column = identity("ids", WORDS)
    return columns.linear_model({"ids": job.ids()}, [column], units=SIZE)


@form("feature columns: a sequence, embedded", only=1)
def sequence(job, _):
    from tensorflow.contrib import feature_column

    column = feature_column.sequence_categorical_column_with_identity("bags", WORDS)
    found, length = feature_column.sequence_input_layer({"bags": job.bags()}, [embedding(column)])
    sizes = tf.cast(tf.expand_dims(length, 1), tf.float32)
    return tf.reduce_sum(found, 1) / sizes
