"""Rows as serialized tf.train.Examples."""

import numpy as np

_LISTS = {"i": "int64_list", "u": "int64_list", "b": "int64_list", "f": "float_list"}


def serialized(tf, rows, names, values, lengths):
    """An Example of each row, bytes [rows]; a feature without values is left out of it."""
    columns = [
        (name, _LISTS.get(its.dtype.kind, "bytes_list"), its.tolist(), np.cumsum(many))
        for name, its, many in zip(names, values, lengths)
    ]
    examples = np.empty(rows, object)
    for row in range(rows):
        example = tf.train.Example()
        for name, kind, its, ends in columns:
            start, end = ends[row - 1] if row else 0, ends[row]
            if start < end:
                feature = example.features.feature[name]
                getattr(feature, kind).value.extend(its[start:end])
        examples[row] = example.SerializeToString()
    return examples
