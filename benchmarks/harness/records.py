"""Rows in TFRecord files, and files read through by either side: (rows, sum of the ids)."""

import numpy as np


def serialized(tf, row):
    """A tf.train.Example of {name: array}; the dtypes decide on the kinds of lists."""
    features = {}
    for name, values in row.items():
        values = np.ravel(values)
        if values.dtype.kind == "f":
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        elif values.dtype.kind == "i":
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            features[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString()


def write(tf, path, examples):
    """Writes the results of `serialized` to a TFRecord file."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for one in examples:
            writer.write(one)


def read_by_torch(path, schema, batch, shuffle=None):
    """Reads a file through by migrate.data."""
    from migrate.data import open_data

    count = total = 0
    for one in open_data(path, schema, batch, last="pad", shuffle=shuffle):
        count += one.rows
        total += int(one.sparse.values().sum())
    return count, total


def read_by_tensorflow(path, features, batch):
    """Reads a file through by tf.data; its sparse features are the ids, a name in .gz is gzip."""
    import tensorflow as tf

    records = tf.data.TFRecordDataset(str(path), "GZIP" if path.suffix == ".gz" else "")
    parsed = records.batch(batch).map(
        lambda given: tf.io.parse_example(given, features), tf.data.AUTOTUNE
    )
    ids = [name for name, kind in features.items() if isinstance(kind, tf.io.VarLenFeature)]
    # Any dense feature: its length is the number of rows.
    (counted, *_) = set(features) - set(ids)
    count = total = 0
    for one in parsed.prefetch(tf.data.AUTOTUNE):
        count += len(one[counted])
        total += sum(int(one[name].values.numpy().sum()) for name in ids)
    return count, total
