"""The DeepFM of `benchmarks.auc_evidence_parts.model` on flat parameters, forward and backward.

All parameters are one float32 vector: the table, row after row, then kernel and bias of each layer.
`versions` is a matrix of such vectors, of which every local batch names the one that its worker
read; so the gradients of a global batch whose batches are late by different steps are one pass.
"""

from typing import List, NamedTuple, Tuple

import numba
import numpy as np

from benchmarks.auc_evidence_parts.model import DIM
from benchmarks.harness.deepfm import HIDDEN

ROW = DIM + 1  # of the table: a linear weight and the factors


class Shape(NamedTuple):
    """Where the parameters are.

    Attributes:
        table: rows of the table.
        width: of the tower's input.
        layers: (first, inputs, units) of each layer: the kernel at `first`, then the bias.
        size: of all.
    """

    table: int
    width: int
    layers: List[Tuple[int, int, int]]
    size: int

    @property
    def tower(self):
        """Where the tower's parameters begin."""
        return self.table * ROW


def shape_of(rows):
    """The `Shape` for a data set, `data.Rows`."""
    width = (rows.ids.shape[1] + 1) * ROW
    layers, first, inputs = [], rows.table * ROW, width
    for units in HIDDEN + (1,):
        layers.append((first, inputs, units))
        first, inputs = first + inputs * units + units, units
    return Shape(rows.table, width, layers, first)


def initial(shape, seed):
    """The initial parameters, distributed as those of the TensorFlow model."""
    random = np.random.RandomState(seed)
    vector = np.zeros(shape.size, np.float32)
    vector[: shape.tower] = 0.05 * random.standard_normal(shape.tower)
    for first, inputs, units in shape.layers:
        limit = np.sqrt(6.0 / (inputs + units))
        vector[first : first + inputs * units] = random.uniform(-limit, limit, inputs * units)
    return vector


def gradients(shape, rows, chosen, versions, version, slot, into, counts=None):
    """Adds the gradients of local batches of equal size to `into`; returns their mean log loss.

    Args:
        shape, rows: the `Shape` and the data set.
        chosen: int [batches, local batch], rows.
        versions: float32 [H, size].
        version: int [batches], the row of `versions` that each batch read.
        slot: int [batches], the row of `into`, float32 [slots, size], to add each batch's mean
            gradient to.
        counts: int32 [table], to which the occurrences of each row are added, or None.
    """
    batches, local = chosen.shape
    flat = chosen.reshape(-1)
    ids, bags, labels = rows.ids[flat], rows.bags[flat], rows.labels[flat]
    vectors = np.empty((len(flat), ids.shape[1] + 1, ROW), np.float32)
    logit = np.empty(len(flat), np.float32)
    _look_up(versions, version, local, ids, bags, rows.padding, vectors, logit)
    below = [vectors.reshape(batches, local, -1)]
    for first, inputs, units in shape.layers:
        above = np.empty((batches, local, units), np.float32)
        for batch in range(batches):
            kernel, bias = _layer(versions[version[batch]], first, inputs, units)
            np.add(below[-1][batch] @ kernel, bias, out=above[batch])
        below.append(above)
        if units != 1:
            np.maximum(above, 0, out=above)
    logit += below.pop().reshape(-1)
    error = _sigmoid(logit) - labels
    loss = float(np.mean(np.logaddexp(0, logit) - labels * logit))
    error /= local
    back = error.reshape(batches, local, 1)
    for at in range(len(shape.layers) - 1, -1, -1):
        first, inputs, units = shape.layers[at]
        down = np.empty((batches, local, inputs), np.float32)
        for batch in range(batches):
            kernel, _ = _layer(versions[version[batch]], first, inputs, units)
            to_kernel, to_bias = _layer(into[slot[batch]], first, inputs, units)
            to_kernel += below[at][batch].T @ back[batch]
            to_bias += back[batch].sum(0)
            np.matmul(back[batch], kernel.T, out=down[batch])
        if at:
            down *= below[at] > 0
        back = down
    _scatter(
        into, slot, local, ids, bags, rows.padding, vectors, error, back.reshape(vectors.shape)
    )
    if counts is not None:
        counts += np.bincount(ids.reshape(-1), minlength=len(counts)).astype(np.int32)
        counts += np.bincount(bags[bags != rows.padding], minlength=len(counts)).astype(np.int32)
    return loss


def scores(shape, rows, chosen, parameters, size=4096):
    """The logits of the rows of a slice, float32."""
    versions, version, parts = parameters[None], np.zeros(1, np.int64), []
    for start in range(chosen.start, chosen.stop, size):
        part = slice(start, min(start + size, chosen.stop))
        ids, bags = rows.ids[part], rows.bags[part]
        vectors = np.empty((len(ids), ids.shape[1] + 1, ROW), np.float32)
        logit = np.empty(len(ids), np.float32)
        _look_up(versions, version, size, ids, bags, rows.padding, vectors, logit)
        layer = vectors.reshape(len(ids), -1)
        for first, inputs, units in shape.layers:
            kernel, bias = _layer(parameters, first, inputs, units)
            layer = layer @ kernel + bias
            if units != 1:
                np.maximum(layer, 0, out=layer)
        parts.append(logit + layer.reshape(-1))
    return np.concatenate(parts)


def _layer(vector, first, inputs, units):
    """A layer's kernel and bias, views."""
    bias = first + inputs * units
    return vector[first:bias].reshape(inputs, units), vector[bias : bias + units]


def _sigmoid(logit):
    return 1 / (1 + np.exp(-logit))


@numba.njit(cache=True)
def _look_up(versions, version, local, ids, bags, padding, vectors, logit):
    """Fills the vectors of all fields and the bag, and the logit's linear part and pairs."""
    fields = ids.shape[1]
    for row in range(ids.shape[0]):
        table = versions[version[row // local]]
        vector = vectors[row]
        for field in range(fields):
            start = ids[row, field] * ROW
            for i in range(ROW):
                vector[field, i] = table[start + i]
        there = 0
        for i in range(ROW):
            vector[fields, i] = 0
        for place in range(bags.shape[1]):
            if bags[row, place] != padding:
                there += 1
                start = bags[row, place] * ROW
                for i in range(ROW):
                    vector[fields, i] += table[start + i]
        for i in range(ROW):
            vector[fields, i] /= max(there, 1)
        total = np.float32(0)
        for field in range(fields + 1):
            total += vector[field, 0]
        for i in range(1, ROW):
            one, squares = np.float32(0), np.float32(0)
            for field in range(fields + 1):
                one += vector[field, i]
                squares += vector[field, i] * vector[field, i]
            total += np.float32(0.5) * (one * one - squares)
        logit[row] = total


@numba.njit(cache=True)
def _scatter(into, slot, local, ids, bags, padding, vectors, error, back):
    """Adds the table's gradients; `back` is the gradient of the tower's input."""
    fields = ids.shape[1]
    sums = np.empty(ROW, np.float32)
    for row in range(ids.shape[0]):
        table = into[slot[row // local]]
        vector, down = vectors[row], back[row]
        for i in range(1, ROW):
            sums[i] = 0
            for field in range(fields + 1):
                sums[i] += vector[field, i]
        for field in range(fields + 1):
            down[field, 0] += error[row]
            for i in range(1, ROW):
                down[field, i] += error[row] * (sums[i] - vector[field, i])
        for field in range(fields):
            start = ids[row, field] * ROW
            for i in range(ROW):
                table[start + i] += down[field, i]
        there = 0
        for place in range(bags.shape[1]):
            there += bags[row, place] != padding
        for place in range(bags.shape[1]):
            if bags[row, place] != padding:
                start = bags[row, place] * ROW
                for i in range(ROW):
                    table[start + i] += down[fields, i] / there
