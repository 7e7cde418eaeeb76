"""A model of benchmarks.training_pace in TensorFlow: in_tensorflow MODEL OPTIMIZER PREFIX THREADS
HOW.

Writes its checkpoint to PREFIX, then trains as it is asked to, by session.run: HOW is "fed", with
batches from memory, or "file", with those that tf.data reads from a TFRecord file.
"""

import sys

import tensorflow.compat.v1 as tf

from benchmarks.harness import records
from benchmarks.training_pace_parts.job import COLUMNS, HISTORY, ITEMS, MODELS, TABLE_ROWS, answer

tf.disable_v2_behavior()

IN_FILE = 8192  # rows, which are read over and over: to write one takes longer than to train on it

OPTIMIZERS = {
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.05),
    "Adam": lambda: tf.train.AdamOptimizer(0.001),
    "Ftrl": lambda: tf.train.FtrlOptimizer(0.05),
}


def table(name, ids, rows, dim):
    """The rows of a table."""
    return tf.nn.embedding_lookup(tf.get_variable(name, [rows, dim]), ids)


def layers(net, sizes, name):
    """Dense layers, all but a last one of size 1 with ReLU."""
    for k, size in enumerate(sizes):
        net = tf.layers.dense(net, size, tf.nn.relu if size > 1 else None, name="%s%d" % (name, k))
    return net


def cross_entropy(labels, logits):
    """Mean over the rows."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))


def deepfm(given):
    """The loss."""
    deep = [table("deep" + name, given[name], TABLE_ROWS, 16) for name in COLUMNS]
    wide = tf.add_n([table("wide" + name, given[name], TABLE_ROWS, 1) for name in COLUMNS])
    numbers, stacked = given["numbers"], tf.stack(deep, 1)
    squares = tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1)
    logit = layers(tf.concat(deep + [numbers], 1), (128, 64, 1), "d")
    logit += wide + tf.layers.dense(numbers, 1) + 0.5 * tf.reduce_sum(squares, 1, keepdims=True)
    return cross_entropy(given["click"], logit[:, 0])


def din(given):
    """The loss."""
    items = tf.get_variable("items", [ITEMS, 32])
    item = tf.nn.embedding_lookup(items, given["item"])
    history = tf.nn.embedding_lookup(items, given["history"])
    target = tf.tile(tf.expand_dims(item, 1), [1, HISTORY, 1])
    pairs = tf.concat([target, history, target - history, target * history], 2)
    weights = tf.nn.softmax(layers(pairs, (36, 1), "attention"), 1)
    interest = tf.reduce_sum(weights * history, 1)
    logit = layers(tf.concat([item, interest], 1), (80, 40, 1), "d")
    return cross_entropy(given["click"], logit[:, 0])


def mmoe(given):
    """The loss."""
    net = tf.concat([table(name, given[name], TABLE_ROWS, 16) for name in COLUMNS], 1)
    experts = []
    for k in range(4):
        expert = tf.layers.dense(net, 64, name="expert%d" % k)
        experts.append(tf.nn.relu(tf.layers.batch_normalization(expert, training=True)))
    losses = []
    for task in ("click", "buy"):
        gates = tf.nn.softmax(tf.layers.dense(net, 4, name="gate" + task))
        mixed = tf.reduce_sum(tf.stack(experts, 1) * tf.expand_dims(gates, 2), 1)
        logits = tf.identity(layers(mixed, (32, 1), task)[:, 0], task + "_logits")
        losses.append(cross_entropy(given[task], logits))
    return tf.add_n(losses)


def train_op(model, kind, given):
    """A step of the model."""
    step = tf.train.get_or_create_global_step()
    if model == "wide":
        return wide(kind, given, step)
    loss = {"deepfm": deepfm, "din": din, "mmoe": mmoe}[model](given)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return OPTIMIZERS[kind]().minimize(loss, step)


def wide(kind, given, step):
    """The canned estimator's step: its linear part under FTRL, as it comes."""
    column = tf.feature_column
    hashed = [column.categorical_column_with_hash_bucket(name, TABLE_ROWS) for name in COLUMNS]
    estimator = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=hashed,
        dnn_feature_columns=[column.embedding_column(one, 16) for one in hashed],
        dnn_hidden_units=[128, 64],
        dnn_optimizer=OPTIMIZERS[kind](),
    )
    features = {name: given[name] for name in COLUMNS}
    mode = tf.estimator.ModeKeys.TRAIN
    label = tf.expand_dims(given["click"], 1)
    return estimator._call_model_fn(features, label, mode, estimator.config).train_op


def write(path, batches):
    """Writes the batches as a TFRecord file of examples."""
    rows = (dict(zip(batch, row)) for batch in batches for row in zip(*batch.values()))
    records.write(tf, path, (records.serialized(tf, row) for row in rows))


def read(path, model, rows, threads):
    """The batches of a file, over and over."""
    wanted = {
        name: tf.io.FixedLenFeature(shape, dtype) for name, (dtype, shape) in MODELS[model].items()
    }
    data = tf.data.TFRecordDataset(path).repeat().batch(rows)
    data = data.map(lambda some: tf.io.parse_example(some, wanted), num_parallel_calls=threads)
    return tf.data.make_one_shot_iterator(data.prefetch(1)).get_next()


def session_of(threads):
    """A session on the default graph, with its variables."""
    config = tf.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads
    )
    session = tf.Session(config=config)
    session.run([tf.global_variables_initializer(), tf.tables_initializer()])
    return session


def main():
    model, kind, prefix, threads, how = sys.argv[1:6]
    threads = int(threads)
    points = {
        name: tf.placeholder(dtype, [None, *shape], name)
        for name, (dtype, shape) in MODELS[model].items()
    }
    op = train_op(model, kind, points)
    session = session_of(threads)
    tf.train.Saver().save(session, prefix)

    def fed(batches):
        given = [{points[name]: one for name, one in batch.items()} for batch in batches]
        return lambda number: session.run(op, given[number])

    def from_file(batches):
        rows = len(batches[0]["click"])
        path = "%s.%d.tfrecord" % (prefix, rows)
        write(path, batches[: max(1, IN_FILE // rows)])
        with tf.Graph().as_default():
            own = train_op(model, kind, read(path, model, rows, threads))
            session = session_of(threads)
        return lambda number: session.run(own)

    answer(model, {"fed": fed, "file": from_file}[how])


main()
