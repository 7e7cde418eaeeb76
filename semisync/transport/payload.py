"""The payload that a batch sends to the parameter servers, and how M of them are combined.

A payload is a list of items. Each item has its tensors of this batch (`tensors`, ready to send),
their shapes in a batch that adds nothing, the effect of a weight on them, and the combination of M
batches:

    DenseGradients    of one PS and dtype, in one flat tensor, since every tensor that is sent has
                      a cost; M of them are added
    SparseGradients   of one PS: values and ids, unsorted and repeated as embedding lookups return
                      them; M of each are concatenated, and the rows of each id summed once
    StackedTensors    any tensors that share the batch's fate; M of them are stacked

Each worker divides its gradients by M before it sends them, so that the parameter server has
nothing to multiply while every weight is 1. Gradients of 16 bits are divided, sent and added up as
float32: divided by M, small float16 numbers would underflow to 0. A batch of weight 0 is replaced
by nothing: it adds no rows, and its values do not matter, finite or not.

`sparse_mean` defines the gradient of one id from its rows:

    batches   sum / M: the global batch's own mean, as for dense gradients
    touches   sum / number of batches that met the id (GBA, arXiv 2205.11048); each worker sums its
              own rows of an id before it sends them
    sum       the sum
"""

import functools
from typing import Any, Dict, List

from semisync.common.compat import tf
from semisync.transport.graph_ops import flat, shaped
from semisync.transport.sparse_sum import sum_by_id


def items_by_device(pairs, stacked, batches, sparse_mean):
    """The payload's items for each PS.

    Args:
        pairs: (gradient, variable).
        stacked: list of `StackedTensors`.
        batches: M.
        sparse_mean: see `SparseGradients`.

    Returns:
        {device: list of items}, the devices in the order in which they first occur.
    """
    items: Dict[str, List[Any]] = {variable.device: [] for _, variable in pairs}
    sparse: Dict[str, List[Any]] = {}  # device -> pairs
    dense: Dict[Any, List[Any]] = {}  # (device, dtype) -> pairs
    for gradient, variable in pairs:
        if isinstance(gradient, tf.IndexedSlices):
            sparse.setdefault(variable.device, []).append((gradient, variable))
        else:
            kind = variable.device, variable.dtype.base_dtype
            dense.setdefault(kind, []).append((gradient, variable))
    for device, group in sparse.items():
        items[device].append(SparseGradients(group, batches, sparse_mean))
    for (device, _), group in dense.items():
        items[device].append(DenseGradients(group, batches))
    for item in stacked:
        items.setdefault(item.device, []).append(item)
    return items


class DenseGradients:
    """Gradients with the shapes of their variables.

    Args:
        pairs: (gradient, variable), all of one dtype.
        batches: M.
    """

    is_mean = True  # a mean over M batches: a smaller global batch needs another divisor

    def __init__(self, pairs, batches):
        self._variables = [variable for _, variable in pairs]
        self._sizes = [variable.shape.num_elements() for variable in self._variables]
        vector = tf.concat(flat([gradient for gradient, _ in pairs]), 0)
        self._dtype = vector.dtype
        self.tensors = _divided(_wide([vector]), batches)

    def nothing(self):
        """The shapes of the tensors of a batch that adds nothing, tuples; they hold zeros."""
        return [(sum(self._sizes),)]

    def weighed(self, tensors, weight):
        """The tensors of a batch that counts `weight`, a float32 scalar."""
        return [tensors[0] * tf.cast(weight, tensors[0].dtype)]

    def combined(self, batches):
        """The global batch's (gradient, variable) pairs, from M lists of tensors."""
        total = tf.add_n([batch[0] for batch in batches])
        total = tf.cast(total, self._dtype)
        total.set_shape([sum(self._sizes)])  # staging has lost it
        parts = tf.split(total, self._sizes)
        shapes = [variable.shape.as_list() for variable in self._variables]
        return list(zip(shaped(parts, shapes), self._variables))


class SparseGradients:
    """Gradients of some rows of variables: tf.IndexedSlices, values [n, ...], ids [n] of any int.

    Args:
        pairs: (gradient, variable).
        batches: M.
        sparse_mean: "batches", "touches" or "sum".
    """

    def __init__(self, pairs, batches, sparse_mean):
        self._variables = [variable for _, variable in pairs]
        self.is_mean = sparse_mean == "batches"
        self._by_touch = sparse_mean == "touches"
        values = [gradient.values for gradient, _ in pairs]
        ids = [gradient.indices for gradient, _ in pairs]
        self._kinds = [(tensor.dtype, tensor.shape[1:]) for tensor in values]
        values = _wide(values)
        if self._by_touch:
            summed = list(map(sum_by_id, zip(values), zip(ids), self._shapes(ids)))
            values, ids, _ = map(list, zip(*summed))
        if self.is_mean:
            values = _divided(values, batches)
        self.tensors = [tensor for pair in zip(values, ids) for tensor in pair]

    def nothing(self):
        """See DenseGradients: no rows."""
        rows = [variable.shape.as_list()[1:] for variable in self._variables]
        return [shape for row in rows for shape in ((0, *row), (0,))]

    def weighed(self, tensors, weight):
        """See DenseGradients."""
        weighed = list(tensors)
        # Values and ids by turns; ids have no weight.
        weighed[::2] = [values * tf.cast(weight, values.dtype) for values in tensors[::2]]
        return weighed

    def combined(self, batches):
        """See DenseGradients; gradients are tf.IndexedSlices."""
        columns = list(zip(*batches))
        shapes = self._shapes([ids[0] for ids in columns[1::2]])
        return list(
            map(self._combined, self._variables, self._kinds, columns[::2], columns[1::2], shapes)
        )

    def _combined(self, variable, kind, values, ids, shape):
        dtype, row = kind
        values, ids, touches = sum_by_id(values, ids, shape)
        values.set_shape(tf.TensorShape([None]).concatenate(row))
        if self._by_touch:
            touches = tf.reshape(touches, [-1] + [1] * row.rank)
            values = values / tf.cast(touches, values.dtype)
        return tf.IndexedSlices(tf.cast(values, dtype), ids, shape), variable

    def _shapes(self, ids):
        """The shapes of the variables, tensors of the dtype of their ids: one constant per rank."""
        alike: Dict[Any, List[int]] = {}
        for number, (variable, tensor) in enumerate(zip(self._variables, ids)):
            alike.setdefault((variable.shape.rank, tensor.dtype.base_dtype), []).append(number)
        shape_of: Dict[int, Any] = {}
        for (_, dtype), numbers in alike.items():
            shapes = [self._variables[number].shape.as_list() for number in numbers]
            shape_of.update(zip(numbers, tf.unstack(tf.constant(shapes, dtype))))
        return [shape_of[number] for number in range(len(ids))]


class StackedTensors:
    """Tensors that share the batch's fate, such as its statistics.

    Args:
        See `GlobalBatchOptimizer.aggregate`.
    """

    is_mean = False

    def __init__(self, tensors, device, update):
        self.device, self.update = device, update
        self._shapes = [tensor.shape for tensor in tensors]
        weight = tf.ones([], tf.float32)  # of the batch, until the chief weighs it
        self.tensors = [tf.expand_dims(tensor, 0) for tensor in [weight] + list(tensors)]

    def nothing(self):
        """See DenseGradients: no rows."""
        return [(0, *tensor.shape.as_list()[1:]) for tensor in self.tensors]

    def weighed(self, tensors, weight):
        """See DenseGradients: the weight is sent along, and the tensors stay as they are."""
        return [tensors[0] * weight] + tensors[1:]

    def combined(self, batches):
        """Stacks the k batches that count.

        Returns:
            Weights float32 [k], and a list of tensors [k, ...].
        """
        columns = [tf.concat(list(column), 0) for column in zip(*batches)]
        columns[0].set_shape([None])
        for column, shape in zip(columns[1:], self._shapes):
            column.set_shape(tf.TensorShape([None]).concatenate(shape))
        return columns[0], columns[1:]


def _wide(tensors):
    narrow = tf.float16, tf.bfloat16
    return [tf.cast(one, tf.float32) if one.dtype in narrow else one for one in tensors]


def _divided(tensors, batches):
    # One constant per dtype, however many tensors there are.
    divisor = functools.lru_cache(maxsize=None)(functools.partial(tf.constant, batches))
    return [tensor / divisor(tensor.dtype.base_dtype) for tensor in tensors]
