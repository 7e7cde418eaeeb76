"""The DeepFM of `benchmarks.auc_evidence_parts.model` in torch, on flat parameters.

All parameters are one float32 vector: the table, row after row, then kernel and bias of each layer.
So the parameters that a worker has read are a row of a matrix of such vectors, and optimizers are a
few lines of NumPy.
"""

from typing import List, NamedTuple, Tuple

import numpy as np
import torch
from torch.nn import functional as F

from benchmarks.auc_evidence_parts.model import DIM
from benchmarks.harness.deepfm import HIDDEN

ROW = DIM + 1  # of the table: a linear weight and the factors


class Shape(NamedTuple):
    """Where the parameters are.

    Attributes:
        table: rows of the table.
        padding: its row that stands for none.
        layers: (first, inputs, units) of each layer: the kernel at `first`, then the bias.
        size: of all.
    """

    table: int
    padding: int
    layers: List[Tuple[int, int, int]]
    size: int

    @property
    def tower(self):
        """Where the tower's parameters begin."""
        return self.table * ROW


def shape_of(rows):
    """The `Shape` for a data set, `data.Rows`."""
    layers, first, inputs = [], rows.table * ROW, (rows.ids.shape[1] + 1) * ROW
    for units in HIDDEN + (1,):
        layers.append((first, inputs, units))
        first, inputs = first + inputs * units + units, units
    return Shape(rows.table, rows.padding, layers, first)


def initial(shape, seed):
    """The initial parameters, distributed as those of the TensorFlow model."""
    random = np.random.RandomState(seed)
    vector = np.zeros(shape.size, np.float32)
    vector[: shape.tower] = 0.05 * random.standard_normal(shape.tower)
    for first, inputs, units in shape.layers:
        limit = np.sqrt(6.0 / (inputs + units))
        vector[first : first + inputs * units] = random.uniform(-limit, limit, inputs * units)
    return vector


def logits(shape, parameters, ids, bags):
    """float32 [rows] of the rows' ids and bags, int32."""
    ids, bags = torch.from_numpy(ids), torch.from_numpy(bags)
    table = parameters[: shape.tower].view(-1, ROW)
    pooled = F.embedding_bag(bags, table, mode="mean", padding_idx=shape.padding)
    vectors = torch.cat([F.embedding(ids, table), pooled[:, None]], 1)
    linear, factors = vectors[:, :, 0].sum(1), vectors[:, :, 1:]
    pairs = 0.5 * (factors.sum(1).square() - factors.square().sum(1)).sum(1)
    layer = vectors.flatten(1)
    for first, inputs, units in shape.layers:
        bias = first + inputs * units
        kernel = parameters[first:bias].view(inputs, units)
        layer = torch.addmm(parameters[bias : bias + units], layer, kernel)
        layer = layer if units == 1 else layer.relu()
    return linear + pairs + layer[:, 0]


def gradients(shape, rows, chosen, read, into):
    """Adds the mean gradients of some local batches, summed, to `into`; their log losses' sum.

    Args:
        shape, rows: the `Shape` and the data set.
        chosen: int [batches, local batch], rows.
        read: float32 [size], the parameters that they are computed from.
        into: float32 [size].
    """
    flat = chosen.reshape(-1)
    parameters = torch.from_numpy(read).requires_grad_()
    found = logits(shape, parameters, rows.ids[flat], rows.bags[flat])
    labels = torch.from_numpy(rows.labels[flat])
    loss = F.binary_cross_entropy_with_logits(found, labels, reduction="sum") / chosen.shape[1]
    (gradient,) = torch.autograd.grad(loss, parameters)
    into += gradient.numpy()
    return float(loss)


def counts(rows, chosen):
    """int [table]: how often each row of the table occurs in the chosen rows."""
    ids, bags = rows.ids[chosen].reshape(-1), rows.bags[chosen].reshape(-1)
    every = np.concatenate([ids, bags[bags != rows.padding]])
    return np.bincount(every, minlength=rows.table)


@torch.no_grad()
def scores(shape, rows, chosen, parameters, size=4096):
    """The logits of the rows of a slice, float32."""
    vector = torch.from_numpy(parameters)
    starts = range(chosen.start, chosen.stop, size)
    parts = (slice(start, min(start + size, chosen.stop)) for start in starts)
    found = [logits(shape, vector, rows.ids[part], rows.bags[part]) for part in parts]
    return torch.cat(found).numpy()
