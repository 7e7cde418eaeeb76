"""TensorFlow's Adam and Adagrad on one flat vector.

A row without a gradient has a gradient of zero: TensorFlow's Adam moves it all the same, its
Adagrad does not. So both are the dense updates, for the table and the tower alike.
"""

import numba
import numpy as np

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
FIRST_ACCUMULATOR = 1e-6  # as in `benchmarks.auc_evidence_parts.plan`


class Adam:
    """tf.compat.v1.train.AdamOptimizer.

    Attributes:
        moment, square: its slots.
        steps: how many it has made.
    """

    def __init__(self, size, beta1=BETA1):
        self.moment, self.square = np.zeros(size, np.float32), np.zeros(size, np.float32)
        self.beta1, self.steps = beta1, 0

    def apply(self, vector, gradient, rate):
        """Changes `vector` in place."""
        self.steps += 1
        rate *= np.sqrt(1 - BETA2**self.steps) / (1 - self.beta1**self.steps)
        _adam(vector, gradient, self.moment, self.square, np.float32(rate), np.float32(self.beta1))

    def mean_square(self):
        """The mean square of the gradients of global batches, float32 [size]."""
        return self.square / np.float32(1 - BETA2**self.steps) if self.steps else self.square


class Adagrad:
    """tf.compat.v1.train.AdagradOptimizer.

    Attributes:
        square: its slot, the sum of squares.
        steps: how many it has made.
    """

    def __init__(self, size):
        self.square, self.steps = np.full(size, FIRST_ACCUMULATOR, np.float32), 0

    def apply(self, vector, gradient, rate):
        """Changes `vector` in place."""
        self.steps += 1
        _adagrad(vector, gradient, self.square, np.float32(rate))

    def mean_square(self):
        """The mean square of the gradients of global batches, float32 [size]."""
        return (self.square - np.float32(FIRST_ACCUMULATOR)) / np.float32(max(1, self.steps))


class AdaptiveRevision:
    """McMahan and Streeter 2014, Adagrad that knows which gradients came in between.

    For a gradient g that was computed when the sum of gradients was G_read: b = G - G_read;
    z += g^2 + 2 g b; z_max = max(z_max, z); w -= rate(z_max) g; w += (rate(old) - rate(z_max)) b.
    Here for a global batch: g b is the mean over its batches, and so is b.
    """

    def __init__(self, size):
        self.total = np.full(size, FIRST_ACCUMULATOR, np.float32)
        self.most = self.total.copy()
        self.sum = np.zeros(size, np.float32)
        self.sums = {0: self.sum.copy()}  # by step
        self.steps = 0

    def apply_late(self, vector, groups, rate):
        """`groups`: {staleness: (its part of the mean gradient, its share of the batches)}."""
        gradient = np.sum([part for part, _ in groups.values()], axis=0)
        between, products = np.zeros_like(gradient), np.zeros_like(gradient)
        for staleness, (part, share) in groups.items():
            missed = self.sum - self.sums[self.steps - staleness]
            between += np.float32(share) * missed
            products += part * missed
        before = rate / np.sqrt(self.most)
        self.total += gradient**2 + 2 * products
        np.maximum(self.most, self.total, out=self.most)
        after = rate / np.sqrt(self.most)
        vector -= after * gradient
        vector += (before - after) * between
        self.steps += 1
        self.sum += gradient
        self.sums[self.steps] = self.sum.copy()
        self.sums.pop(self.steps - 16, None)


@numba.njit(cache=True)
def _adam(vector, gradient, moment, square, rate, beta1):
    one, tiny = np.float32(1), np.float32(1e-30)
    beta2, epsilon = np.float32(BETA2), np.float32(EPSILON)
    for i in range(len(vector)):
        g = gradient[i]
        m = beta1 * moment[i] + (one - beta1) * g
        v = beta2 * square[i] + (one - beta2) * g * g
        if -tiny < m < tiny:
            m = np.float32(0)  # denormal numbers would be slow
        if v < tiny:
            v = np.float32(0)
        moment[i], square[i] = m, v
        vector[i] -= rate * m / (np.sqrt(v) + epsilon)


@numba.njit(cache=True)
def _adagrad(vector, gradient, square, rate):
    for i in range(len(vector)):
        g = gradient[i]
        if g != 0:
            square[i] += g * g
            vector[i] -= rate * g / np.sqrt(square[i])
