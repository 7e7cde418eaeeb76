"""`runtime.BatchNorm` in training, against its formula in float64."""

import pytest
import torch

from migrate.runtime import BatchNorm


def by_formula(norm, x, axis):
    """y, the batch's mean and its biased variance, in float64."""
    axes = [one for one in range(x.dim()) if one != axis % x.dim()]
    shape = [-1 if one == axis % x.dim() else 1 for one in range(x.dim())]
    variance, mean = torch.var_mean(x, axes, correction=0)
    y = (x - mean.reshape(shape)) / torch.sqrt(variance.reshape(shape) + norm.eps)
    return (
        y * norm.weight.double().reshape(shape) + norm.bias.double().reshape(shape),
        mean,
        variance,
    )


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((256, 8), -1), ((2, 8), -1), ((1, 8), -1), ((16, 5, 5, 8), -1), ((16, 8, 5, 5), 1)],
)
@pytest.mark.parametrize("unbiased", [False, True])
def test_outputs_gradients_and_moved_statistics_are_the_formulas(shape, axis, offset, unbiased):
    state = torch.Generator().manual_seed(3)
    x = (torch.randn(shape, generator=state) + offset).requires_grad_(True)
    along = torch.randn(shape, generator=state)
    norm = BatchNorm(8, axis=axis, momentum=0.25, unbiased=unbiased)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 2, generator=state)
        norm.bias.uniform_(-1, 1, generator=state)
    found = norm(x)
    gradients = torch.autograd.grad(found, [x, norm.weight, norm.bias], along)

    exact = x.detach().double().requires_grad_(True)
    wanted, mean, variance = by_formula(norm, exact, axis)
    wanted_gradients = torch.autograd.grad(wanted, [exact, norm.weight, norm.bias], along.double())
    count = x.numel() // 8
    stored = variance * count / (count - 1) if unbiased and count > 1 else variance
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(found.double(), wanted, **close)
    for one, other in zip(gradients, wanted_gradients):
        torch.testing.assert_close(one.double(), other.double(), **close)
    torch.testing.assert_close(norm.running_mean.double(), 0.25 * mean, **close)
    torch.testing.assert_close(norm.running_var.double(), 0.75 + 0.25 * stored, **close)


@pytest.mark.parametrize("axis", [-1, 1])
def test_a_model_that_serves_takes_the_moving_statistics(axis):
    state = torch.Generator().manual_seed(4)
    norm = BatchNorm(8, eps=0.1, axis=axis).eval()
    with torch.no_grad():
        for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var):
            values.uniform_(0.01, 1, generator=state)
    x = torch.randn(4, 8, 8, generator=state)
    shape = [-1 if one == axis % 3 else 1 for one in range(3)]
    weight, bias, mean, variance = (
        values.detach().double().reshape(shape)
        for values in (norm.weight, norm.bias, norm.running_mean, norm.running_var)
    )
    wanted = (x - mean) / torch.sqrt(variance + 0.1) * weight + bias
    torch.testing.assert_close(norm(x).detach().double(), wanted, rtol=1e-5, atol=1e-5)
