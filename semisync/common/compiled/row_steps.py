"""Steps of optimizers on rows of several float32 tables, which are read and written once.

The formulas are those of migrate.torchrec.optimizers, in float32. Tables and ids are given as in
`table_rows`; `grads` is [ids, width]. Each function returns the number of the first table with an
id beyond its size, or -1; the tables before it have taken the step.
"""

from __future__ import annotations

import numpy

from semisync.common.compiled.jit import compiled, float32_at

two = numpy.float32(2)  # numba computes float32 times an integer in float64


# error_model: a division by 0 gives inf or NaN, as in torch, and raises nothing.
@compiled(error_model="numpy")
def adagrad(weights, sums, sizes, ids, bounds, grads, lr, eps):
    """Adagrad's step; `sums` are the tables of the squared gradients' sums."""
    width = grads.shape[1]
    for k in range(len(weights)):
        weight = float32_at(weights[k], (sizes[k], width))
        a = float32_at(sums[k], (sizes[k], width))
        for i in range(bounds[k], bounds[k + 1]):
            row = ids[i]
            if row < 0 or row >= sizes[k]:
                return k
            for j in range(width):
                grad = grads[i, j]
                a[row, j] += grad * grad
                weight[row, j] -= lr * grad / (numpy.sqrt(a[row, j]) + eps)
    return -1


@compiled(error_model="numpy")
def ftrl(weights, accums, linears, sizes, ids, bounds, grads, lr, l1, l2, l2_shrinkage):
    """FTRL's step with lr_power -0.5; `accums` and `linears` are the tables of its slots."""
    width = grads.shape[1]
    for k in range(len(weights)):
        weight = float32_at(weights[k], (sizes[k], width))
        n = float32_at(accums[k], (sizes[k], width))
        z = float32_at(linears[k], (sizes[k], width))
        for i in range(bounds[k], bounds[k + 1]):
            row = ids[i]
            if row < 0 or row >= sizes[k]:
                return k
            for j in range(width):
                grad, w, before = grads[i, j], weight[row, j], numpy.sqrt(n[row, j])
                n[row, j] += grad * grad
                after = numpy.sqrt(n[row, j])
                shrunk = grad + two * l2_shrinkage * w
                linear = z[row, j] + (shrunk - (after - before) / lr * w)
                z[row, j] = linear
                w = (numpy.copysign(l1, linear) - linear) / (after / lr + two * l2)
                weight[row, j] = w if abs(linear) > l1 else numpy.float32(0)
    return -1
