"""BatchNorm's moving statistics share the fate of their batch.

A worker sends, for each BatchNorm, how many values its batch had, their mean and their variance.
The chief makes of those of a global batch the mean and the variance of all its values (unequal
batches and decayed ones count by n x weight; the law of total variance, in the form that does not
cancel), and moves the variables towards them once:

    n = sum w n_i          mean = sum w n_i mean_i / n
    variance = sum w n_i (variance_i + (mean_i - mean)^2) / n
    moving = moving keep + statistic (1 - keep)

    keep = momentum^(sum w)    "aggregate": as much as that many local updates would
    keep = momentum            "aggregate-once": as one step with the global batch would

A batch that was computed with `training` false has the rate 0, one without a row has n = 0: they
count for nothing, whatever their statistics are (TensorFlow 1.15's fused kernel leaves those of a
batch it did not train on unset). Where TensorFlow corrects a variance by n / (n - 1), as
FusedBatchNorm does, the global batch's is corrected by its own n.
"""

import collections
import weakref
from typing import Any

from graph_rewrite.batch_norms import find_batch_norms
from semisync.compat import tf

HEAD = 2  # of a batch's vector: how many values, and the rate 1 - momentum

# What one BatchNorm leaves on one PS: its variables there, either of them None.
_Part = collections.namedtuple("_Part", "batch_norm mean variance")


# graph -> names of the BatchNorms whose statistics one of its optimizers carries
_carried: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


def share(carry, once=False):
    """Has the statistics of the default graph's BatchNorms share the fate of their batch.

    Those that an optimizer of the graph carries already are left to it.

    Args:
      carry: `GlobalBatchOptimizer.carry`.
      once: True for "aggregate-once".

    Returns: the names of the ops whose work is now done once a global step, a list.
    """
    graph = tf.get_default_graph()
    carried = _carried.setdefault(graph, set())
    found = [
        each
        for each in find_batch_norms(graph)
        if each.updates and not each.left_alone and each.op not in carried
    ]
    carried.update(each.op for each in found)
    _share(found, carry, once)
    return [update.op for each in found for update in each.updates]


def _share(batch_norms, carry, once):
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    places: Any = collections.OrderedDict()  # (device, dtype) -> {op: _Part}
    for batch_norm in batch_norms:
        for role in ("mean", "variance"):
            variable = variables.get(getattr(batch_norm, "moving_" + role))
            if variable is not None:
                place = places.setdefault((variable.device, variable.dtype.base_dtype), {})
                part = place.get(batch_norm.op, _Part(batch_norm, None, None))
                place[batch_norm.op] = part._replace(**{role: variable})
    for (device, dtype), parts in places.items():
        _carry_together(list(parts.values()), device, dtype, carry, once)


def _carry_together(parts, device, dtype, carry, once):
    """One vector a batch for all the statistics on one PS, for each tensor has its price."""
    vectors = [_vector(part, dtype) for part in parts]
    sizes = [vector.shape.num_elements() for vector in vectors]

    def update(weights, stacked):
        pieces = tf.split(stacked[0], sizes, axis=1)
        with tf.device(device):
            moves = [_move(part, weights, piece, once) for part, piece in zip(parts, pieces)]
        return tf.group(*moves)

    carry([tf.concat(vectors, 0)], device, update)


def _vector(part, dtype):
    """What a batch sends: n, rate, means, and variances if they are kept on this PS."""
    graph, batch_norm = tf.get_default_graph(), part.batch_norm

    def flat(name, variable):
        size = variable.shape.num_elements()
        return tf.reshape(tf.cast(_tensor(graph, name), dtype), [size])

    mean = flat(batch_norm.mean, part.mean if part.mean is not None else part.variance)
    values = tf.cast(tf.size(_tensor(graph, batch_norm.input)), dtype)
    count = values / tf.cast(tf.size(mean), dtype)
    vector = [tf.stack([count, _rate(graph, batch_norm, dtype)]), mean]
    if part.variance is not None:
        variance = flat(batch_norm.variance, part.variance)
        if batch_norm.bessel:
            variance *= tf.maximum(count - 1, 1) / count
        vector.append(variance)
    return tf.concat(vector, 0)


def _rate(graph, batch_norm, dtype):
    """That of the updates in training; 0 where the batch is not trained on."""
    rate = batch_norm.updates[0].rate
    if isinstance(rate, str):
        rate = tf.reshape(tf.cast(_tensor(graph, rate), dtype), [])
    else:
        rate = tf.constant(rate, dtype)
    if isinstance(batch_norm.training, str):
        rate *= tf.reshape(tf.cast(_tensor(graph, batch_norm.training), dtype), [])
    return rate


def _tensor(graph, name):
    return graph.get_tensor_by_name(name if ":" in name else name + ":0")


def _move(part, weights, batches, once):
    """The op that moves the variables of one BatchNorm, from the vectors [k, n] of k batches."""
    counts = tf.logical_and(tf.greater(batches[:, 0], 0), tf.not_equal(batches[:, 1], 0))
    batches = tf.where(counts, batches, tf.zeros_like(batches))
    count, rates = batches[:, 0], batches[:, 1]
    weights = tf.cast(weights, batches.dtype) * tf.cast(counts, batches.dtype)
    counted = tf.reduce_sum(weights)
    rate = tf.math.divide_no_nan(tf.reduce_sum(weights * rates), counted)
    keep = 1 - rate if once else tf.pow(1 - rate, counted)
    total = tf.reduce_sum(weights * count)
    of_all = tf.expand_dims(tf.math.divide_no_nan(weights * count, total), 1)  # [k, 1], their sum 1
    size = (part.mean if part.mean is not None else part.variance).shape.num_elements()
    means, variances = batches[:, HEAD : HEAD + size], batches[:, HEAD + size :]
    mean = tf.reduce_sum(of_all * means, 0)
    moves = []
    if part.mean is not None:
        moves.append(_towards(part.mean, mean, keep))
    if part.variance is not None:
        variance = tf.reduce_sum(of_all * (variances + tf.math.squared_difference(means, mean)), 0)
        if part.batch_norm.bessel:
            variance *= total / tf.maximum(total - 1, 1)
        moves.append(_towards(part.variance, variance, keep))
    return tf.group(*moves)


def _towards(variable, statistic, keep):
    statistic = tf.reshape(statistic, variable.shape)
    return tf.assign(variable, variable * keep + statistic * (1 - keep)).op
