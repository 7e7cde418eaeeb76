"""The input that a column of the data is fed to: a tensor, or a feature of serialized Examples."""

import collections

import numpy as np

from .messages import Refused, sizes

SPARSE = ("/indices", "/values", "/shape")  # the placeholders of a tf.sparse_placeholder
_LISTS = {"i": "int64_list", "u": "int64_list", "b": "int64_list", "f": "float_list"}


class Input(collections.namedtuple("Input", "column name tensors")):
    """A column of the data and the input that it is fed to.

    Attributes:
        column: its name in the data.
        name: its name in the model.
        tensors: one, or a sparse tensor's indices, values and shape; none for a feature of
            serialized Examples.
    """

    def describe(self):
        """The description by which the parent reads the column: dtype is None if any will do, shape
        if it is not known, or the input is sparse."""
        dtype = shape = None
        if self.tensors:
            # The one tensor, or the values between indices and shape.
            kind = self.tensors[len(self.tensors) // 2].dtype.base_dtype
            sent_as = {"string": "bytes", "bfloat16": "float32"}  # which the feed narrows
            dtype = sent_as.get(kind.name, kind.name)
        sparse = len(self.tensors) != 1
        if not sparse and self.tensors[0].shape.ndims is not None:
            shape = self.tensors[0].shape.as_list()
        said = {"column": self.column, "name": self.name, "dtype": dtype}
        return dict(said, sparse=sparse, shape=shape)

    def feed(self, values, lengths):
        """{tensor: array} for one batch."""
        if len(self.tensors) == 1:
            return {self.tensors[0]: self._fitting(values)}
        starts = np.cumsum(lengths) - lengths
        rows = np.repeat(np.arange(len(lengths)), lengths)
        places = np.arange(len(values)) - np.repeat(starts, lengths)
        shape = np.array([len(lengths), lengths.max()], np.int64)
        return dict(zip(self.tensors, [np.stack([rows, places], 1), values, shape]))

    def _fitting(self, values):
        """`values` [rows] as [rows, 1] if the tensor has one more dimension."""
        shape = self.tensors[0].shape
        if shape.is_compatible_with(values.shape + (1,)) and shape.ndims is not None:
            values = values.reshape(values.shape + (1,))
        if not shape.is_compatible_with(values.shape):
            raise Refused(
                "the input {!r} takes the shape {}, but column {!r} gives {}".format(
                    self.name, sizes(shape.as_list()), self.column, sizes(values.shape)
                )
            )
        return values


def serialized(tf, rows, names, values, lengths):
    """An Example per row, bytes [rows]; features without values are left out."""
    columns = [
        (name, _LISTS.get(column.dtype.kind, "bytes_list"), column.tolist(), np.cumsum(many))
        for name, column, many in zip(names, values, lengths)
    ]
    examples = np.empty(rows, object)
    for row in range(rows):
        example = tf.train.Example()
        for name, kind, column, ends in columns:
            start, end = ends[row - 1] if row else 0, ends[row]
            if start < end:
                feature = example.features.feature[name]
                getattr(feature, kind).value.extend(column[start:end])
        examples[row] = example.SerializeToString()
    return examples
