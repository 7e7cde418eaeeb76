"""Rows of the log as serialised tf.train.Examples."""

import numpy as np
import tensorflow.compat.v1 as tf


def serialized(rows, spec):
    """One Example for each row, as bytes, as tf.parse_example takes it with `spec`."""
    count = len(rows["clicked"])
    return np.array([_example(rows, row, spec) for row in range(count)], object)


def _example(rows, row, spec):
    """An empty list, or nothing but '', is no feature at all."""
    features = {}
    for name, expected in spec.items():
        values = list(np.atleast_1d(rows[name][row]))
        if isinstance(expected, tf.VarLenFeature) and expected.dtype == tf.string:
            values = [value for value in values if value]
        if isinstance(expected, tf.FixedLenFeature) and expected.default_value is not None:
            values = [value for value in values if value != expected.default_value]
        if values:
            features[name] = _feature(expected.dtype, values)
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


def _feature(dtype, values):
    if dtype == tf.string:
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if dtype == tf.int64:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))
