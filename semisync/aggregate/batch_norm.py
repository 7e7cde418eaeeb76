"""BatchNorm's moving statistics share the fate of their batch.

A worker sends, per BatchNorm, how many values its batch had, their mean and their variance.
From those of a global batch the chief computes the mean and the variance of all its values (unequal
batches and decayed ones count by n x weight; the law of total variance, in the form without
cancellation), and moves the variables towards them once:

    n = sum w n_i          mean = sum w n_i mean_i / n
    variance = sum w n_i (variance_i + (mean_i - mean)^2) / n
    moving = moving keep + statistic (1 - keep)

    keep = momentum^(sum w)    "aggregate": as much as that many local updates would
    keep = momentum            "aggregate-once": as one step with the global batch would

A batch that was computed with `training` false has the rate 0, one without a row has n = 0: they
count for nothing, regardless of their statistics (TensorFlow 1.15's fused kernel leaves those of a
batch it did not train on unset). Where TensorFlow corrects a variance by n / (n - 1), as
FusedBatchNorm does, the global batch's is corrected by its own n.

Where TensorFlow corrects a moving average for its start at zero, `moving` is its biased one:

    step = step + sum w    "aggregate"; "aggregate-once": + 1
    corrected = moving / (1 - momentum^step)
"""

import collections
import weakref
from typing import Any, NamedTuple, Tuple

import numpy as np

from graph_rewrite.graph.partitions import parts
from semisync.common.compat import tf
from semisync.common.tensor_names import in_session
from semisync.transport.graph_ops import flat, shaped


class _Part(NamedTuple):
    """The statistics of one BatchNorm on one PS, or a part of them if they are partitioned.

    Attributes:
        batch_norm: the `BatchNorm`.
        start: the element at which the part begins.
        whole: how many elements the whole variable has.
        mean, variance: its variables there that move, either of them None.
        corrections: of `_Correction`.
    """

    batch_norm: Any
    start: int
    whole: int
    mean: Any = None
    variance: Any = None
    corrections: Tuple[Any, ...] = ()


class _Correction(NamedTuple):
    """The variables of an average that is corrected for its start at zero."""

    biased: Any
    step: Any
    corrected: Any


# graph -> names of the BatchNorms whose statistics one of its optimizers aggregates
_aggregated: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()


def aggregate(batch_norms, add, once=False):
    """Has the statistics of the default graph's BatchNorms share the fate of their batch.

    BatchNorms that an optimizer of the graph aggregates already are skipped.

    Args:
        batch_norms: of the graph, see `find_batch_norms`.
        add: `GlobalBatchOptimizer.aggregate`.
        once: True for "aggregate-once".

    Returns:
        The names of the ops whose work is now done once per global step, a list.
    """
    aggregated = _aggregated.setdefault(tf.get_default_graph(), set())
    own = [
        batch_norm
        for batch_norm in batch_norms
        if batch_norm.shareable and batch_norm.op not in aggregated
    ]
    aggregated.update(batch_norm.op for batch_norm in own)
    _add(own, add, once)
    return [op for batch_norm in own for update in batch_norm.updates for op in update.ops]


def _add(batch_norms, add, once):
    variables = {variable.op.name: variable for variable in tf.global_variables()}
    places: Any = collections.OrderedDict()  # (device, dtype) -> {(op, start): _Part}
    for batch_norm in batch_norms:
        debiased = {each.variable: each.debias for each in batch_norm.updates if each.debias}
        for role in ("mean", "variance"):
            name = getattr(batch_norm, "moving_" + role)
            names = parts(variables, name) if name else []
            moved = [variables[part] for part in names if part in variables]
            sizes = [variable.shape.num_elements() for variable in moved]
            for number, variable in enumerate(moved):
                start, whole = sum(sizes[:number]), sum(sizes)
                place = places.setdefault((variable.device, variable.dtype.base_dtype), {})
                key = batch_norm.op, start
                part = place.get(key, _Part(batch_norm, start, whole))
                if name in debiased:
                    biased, step = (variables[shadow] for shadow in debiased[name][:2])
                    correction = _Correction(biased, step, corrected=variable)
                    part = part._replace(corrections=part.corrections + (correction,))
                    variable = biased
                place[key] = part._replace(**{role: variable})
    for (device, dtype), on_device in places.items():
        _add_vector(list(on_device.values()), device, dtype, add, once)


def _add_vector(parts, device, dtype, add, once):
    """One vector per batch holds all the statistics on one PS, since sending a tensor has a
    cost."""
    layout = _Layout(parts)

    def update(weights, stacked):
        with tf.device(device):
            return _move(layout, weights, stacked[0], once)

    add([_vector(layout, dtype)], device, update)


class _Layout:
    """How a batch's vector holds b BatchNorms: [n [b], rate [b], means [s], variances [v]].

    Args:
        parts: of `_Part`, in the vector's order.

    Attributes:
        parts: the same.
        means, variances: the variables, lists of at most b.
        moved: the positions, among the means, of the elements that `means` keep, int32.
        kept: the positions of the parts with a variance.
        sizes: how many values each has, a list of b.
        owner: the position of the BatchNorm of each mean, int32 [s].
        owner_of_variance: that of each variance, int32 [v].
        mean_of: the position among the means that belongs to each variance, int32 [v].
        bessel: which variances TensorFlow corrects, bool [v].
    """

    def __init__(self, parts):
        self.parts = parts
        self.kept = [number for number, part in enumerate(parts) if part.variance is not None]
        self.sizes = [
            (part.mean if part.mean is not None else part.variance).shape.num_elements()
            for part in parts
        ]
        self.owner = np.repeat(np.arange(len(parts), dtype=np.int32), self.sizes)
        self.mean_of = np.flatnonzero(np.isin(self.owner, self.kept)).astype(np.int32)
        self.owner_of_variance = self.owner[self.mean_of]
        with_mean = [number for number, part in enumerate(parts) if part.mean is not None]
        self.means = [parts[number].mean for number in with_mean]
        self.variances = [parts[number].variance for number in self.kept]
        self.moved = np.flatnonzero(np.isin(self.owner, with_mean)).astype(np.int32)
        self.bessel = np.array([part.batch_norm.bessel for part in parts])[self.owner_of_variance]


def _vector(layout, dtype):
    graph = tf.get_default_graph()

    def values_of(numbers, names):
        whole = flat([tf.cast(_tensor(graph, name), dtype) for name in names])
        for number, values in zip(numbers, whole):
            start, size = layout.parts[number].start, layout.sizes[number]
            part = size != layout.parts[number].whole
            yield values[start : start + size] if part else values

    batch_norms = [part.batch_norm for part in layout.parts]
    sizes = tf.stack([tf.size(_tensor(graph, batch_norm.input)) for batch_norm in batch_norms])
    count = tf.cast(sizes, dtype) / tf.constant([part.whole for part in layout.parts], dtype)
    vector = [count, _rates(graph, batch_norms, dtype)]
    vector += values_of(range(len(batch_norms)), [batch_norm.mean for batch_norm in batch_norms])
    if layout.kept:
        names = [batch_norms[number].variance for number in layout.kept]
        variances = tf.concat(list(values_of(layout.kept, names)), 0)
        # Back to the variance over n, which the law of total variance takes.
        plain = tf.maximum(count - 1, 1) / count
        vector.append(variances * _correction(layout, plain))
    vector = tf.concat(vector, 0)
    # `StackedTensors.nothing` needs a static size, which the parts may lack.
    return tf.reshape(vector, [2 * len(batch_norms) + len(layout.owner) + len(layout.mean_of)])


def _correction(layout, factors):
    """Per variance its BatchNorm's element of `factors` [b], or 1 where TensorFlow corrects
    none."""
    factors = tf.gather(factors, layout.owner_of_variance)
    return tf.where(layout.bessel, factors, tf.ones_like(factors))


def _rates(graph, batch_norms, dtype):
    """The rates of the updates in training, [b]; 0 where a batch is not trained on."""
    training = [
        batch_norm.training if isinstance(batch_norm.training, str) else 1.0
        for batch_norm in batch_norms
    ]
    rates = [batch_norm.updates[0].rate for batch_norm in batch_norms]
    return _scalars(graph, rates, dtype) * _scalars(graph, training, dtype)


def _scalars(graph, values, dtype):
    """A vector of floats and of the values of tensors by their names, unique built once."""
    if not any(isinstance(value, str) for value in values):
        return tf.constant(values, dtype)
    unique = list(collections.OrderedDict.fromkeys(values))
    scalars = [
        tf.reshape(tf.cast(_tensor(graph, value), dtype), [])
        if isinstance(value, str)
        else tf.constant(value, dtype)
        for value in unique
    ]
    places = {value: number for number, value in enumerate(unique)}
    return tf.gather(tf.stack(scalars), [places[value] for value in values])


def _tensor(graph, name):
    return graph.get_tensor_by_name(in_session(name))


def _move(layout, weights, batches, once):
    """The op that moves the variables, from the vectors [k, ...] of k batches."""
    number = len(layout.parts)
    sizes = [number, number, len(layout.owner), len(layout.mean_of)]
    count, rates, means, variances = tf.split(batches, sizes, axis=1)
    counts = tf.logical_and(tf.greater(count, 0), tf.not_equal(rates, 0))
    weights = tf.expand_dims(tf.cast(weights, batches.dtype), 1) * tf.cast(counts, batches.dtype)
    counted = tf.reduce_sum(weights, 0)
    # Where no batch counts the rate is 0, so that all is kept.
    rate = tf.math.divide_no_nan(tf.reduce_sum(weights * rates, 0), counted)
    keep = 1 - rate if once else tf.pow(1 - rate, counted)
    total = tf.reduce_sum(weights * count, 0)
    portion = tf.math.divide_no_nan(weights * count, total)  # [k, b], their sum 1

    def average(values, owner):
        """The weighted average over the batches; batches of weight 0 may hold NaN."""
        portions = tf.gather(portion, owner, axis=1)
        values = tf.where(tf.greater(portions, 0), values, tf.zeros_like(values))
        return tf.reduce_sum(portions * values, 0)

    mean = average(means, layout.owner)
    around = tf.gather(means, layout.mean_of, axis=1), tf.gather(mean, layout.mean_of)
    variance = average(variances + tf.math.squared_difference(*around), layout.owner_of_variance)
    variance *= _correction(layout, total / tf.maximum(total - 1, 1))
    mean, mean_keep = tf.gather(mean, layout.moved), tf.gather(keep, layout.owner[layout.moved])
    variance_keep = tf.gather(keep, layout.owner_of_variance)
    moved = _assign(layout.means, mean, mean_keep)
    moved += _assign(layout.variances, variance, variance_keep)
    steps = tf.cast(tf.greater(counted, 0), counted.dtype) if once else counted
    with tf.control_dependencies(moved):
        corrected = [
            _correct(correction, steps[number], 1 - rate[number])
            for number, part in enumerate(layout.parts)
            for correction in part.corrections
        ]
    return tf.group(*moved, *corrected)


def _correct(correction, steps, momentum):
    """The op that corrects an average which has moved by some steps, which may be 0."""
    step = correction.step.read_value() + steps
    counts = tf.cast(tf.greater(steps, 0), step.dtype)
    value = tf.math.divide_no_nan(correction.biased.read_value(), 1 - tf.pow(momentum, step))
    value = value * counts + correction.corrected.read_value() * (1 - counts)
    return tf.group(
        correction.step.assign(step, read_value=False),
        correction.corrected.assign(value, read_value=False),
    )


def _assign(variables, statistics, keep):
    """The ops that move variables towards their parts of a vector, whole vectors at a time.

    Args:
        variables: on one PS, a list; none if it has, say, means alone.
        statistics, keep: per element, one variable after the other, [e].
    """
    if not variables:
        return []
    old = tf.concat(flat([tf.convert_to_tensor(variable) for variable in variables]), 0)
    new = old * keep + statistics * (1 - keep)
    parts = tf.split(new, [variable.shape.num_elements() for variable in variables])
    parts = shaped(parts, [variable.shape.as_list() for variable in variables])
    return [variable.assign(part, read_value=False) for variable, part in zip(variables, parts)]
