"""Normalisation, dropout, and losses whose op returns its gradient too."""

from __future__ import annotations

from typing import Any, List, Tuple

import torch
from torch import Tensor
from torch.nn import functional

from migrate.runtime.numeric.axes import beside


def bias_add_channels_first(x: Tensor, bias: Tensor) -> Tensor:
    """x + bias, one for each channel; x: [batch, channels, ...]."""
    return x + bias.reshape(beside(len(bias), x.ndim, 1))


def clip_by_norm(x: Tensor, limit: float, axes: List[int]) -> Tensor:
    """x, scaled down to the limit if its norm along the axes exceeds it."""
    squares = torch.square(x).sum(axes, keepdim=True)
    # Two `where`, as clip_ops.py: the gradient of the root at 0 is a NaN.
    above_0 = squares > 0
    norm = torch.where(above_0, torch.where(above_0, squares, 1.0).sqrt(), squares)
    return x * limit / norm.clamp(min=limit)


def fused_batch_norm(
    x: Tensor,
    scale: Tensor,
    offset: Tensor,
    mean: Tensor,
    variance: Tensor,
    epsilon: float,
    training: bool = False,
    channels: int = -1,
    outputs: int = 5,
) -> Tuple[Tensor, ...]:
    """(x normalised and scaled per channel, mean, variance, ...): TensorFlow's FusedBatchNorm.

    Args:
        training: uses the mean and the variance of x, and returns these, the variance with Bessel's
            correction.
        channels: their axis.
        outputs: how many; those after the statistics are the inputs of TensorFlow's gradient: the
            mean, the variance that was used, and nothing.
    """
    axis = channels % x.ndim
    # TensorFlow's op has no gradient of its statistics (nn_grad.py, _BaseFusedBatchNormGrad).
    mean, used = mean.detach(), variance.detach()
    if training:
        others = [other for other in range(x.ndim) if other != axis]
        mean, used = x.float().mean(others), x.float().var(others, correction=0)
        count = x.numel() // x.shape[axis]
        variance = used * (count / max(count - 1, 1))
    shape = beside(x.shape[axis], x.ndim, axis)
    factor = (scale * torch.rsqrt(used + epsilon)).reshape(shape)
    result = (x.to(factor.dtype) - mean.reshape(shape)) * factor + offset.reshape(shape)
    return (result.to(x.dtype), mean, variance, mean, used, mean[:0])[:outputs]


def local_response_norm(x: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    """x / (bias + alpha * the sum of squares of 2 radius + 1 channels) ** beta.

    Args:
        x: [batch, height, width, channels].
    """
    squares = functional.pad(x.square(), (radius, radius))
    sums = squares.unfold(-1, 2 * radius + 1, 1).sum(-1)
    return x / (bias + alpha * sums) ** beta


def softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tuple[Tensor, Tensor]:
    """(loss per row, its gradient of the logits).

    The gradient is softmax(logits) - labels, as TensorFlow's, even if the labels do not add up to
    1.

    Args:
        labels: a distribution per row.
    """
    logits, labels = torch.broadcast_tensors(logits, labels)
    logs = torch.log_softmax(logits, -1)
    gradient = (logs.exp() - labels).detach()
    losses = -(labels * logs.detach()).sum(-1)
    through = (gradient * logits).sum(-1)
    # A term of value 0, whose gradient is the one that TensorFlow's kernel returns.
    return losses + (through - through.detach()), logs.exp() - labels


def sparse_softmax_cross_entropy(logits: Tensor, labels: Tensor) -> Tuple[Tensor, Tensor]:
    """(loss per row, its gradient of the logits); labels: the number of a class per row."""
    logs = torch.log_softmax(logits, -1)
    chosen = labels.unsqueeze(-1).long()
    ones = (chosen == torch.arange(logits.shape[-1], device=logits.device)).to(logs.dtype)
    return -logs.gather(-1, chosen).squeeze(-1), logs.exp() - ones


def dropout_where(x: Tensor, drawn: Tensor, rate: Any, training: bool = True) -> Tensor:
    """Dropout by random values in [0, 1): x is dropped where they are below the rate, a number or a
    tensor."""
    return torch.where(drawn >= rate, x / (1 - rate), 0.0) if training else x
