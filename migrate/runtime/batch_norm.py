"""TensorFlow's BatchNorm as a torch module.

torch's BatchNorm moves its running variance towards the unbiased one. TensorFlow does so in its
fused kernel (4-D inputs) alone; elsewhere the variance is the biased one.

    y = (x - mean) / sqrt(variance + eps) * weight + bias

Training: mean and variance of the batch, over all axes but the channels'; the running ones move by
`momentum`, which is 1 - TensorFlow's decay. Evaluation: the running ones.
Source: tensorflow/python/ops/nn_impl.py, batch_normalization and fused_batch_norm
"""

from __future__ import annotations

import torch
from torch import nn


class BatchNorm(nn.Module):
    """Normalises every channel of [..., channels], or of `axis`.

    `frozen`, which may be set: training uses the running statistics, too, as a graph does that
    trains with them.

    Args:
        scale, center: whether there is a weight (gamma) and a bias (beta).
        unbiased: as the fused kernel's running variance.
        dtype: of the weight, the bias and the running statistics.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor

    def __init__(
        self,
        channels: int,
        eps: float = 0.001,
        momentum: float = 0.01,
        axis: int = -1,
        scale: bool = True,
        center: bool = True,
        unbiased: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        self.eps, self.momentum, self.axis, self.unbiased = eps, momentum, axis, unbiased
        self.frozen = False
        self.weight = nn.Parameter(torch.ones(channels, dtype=dtype)) if scale else None
        self.bias = nn.Parameter(torch.zeros(channels, dtype=dtype)) if center else None
        self.register_buffer("running_mean", torch.zeros(channels, dtype=dtype))
        self.register_buffer("running_var", torch.ones(channels, dtype=dtype))

    def extra_repr(self) -> str:
        """The text that torch prints for it."""
        return f"{self.running_mean.numel()}, eps={self.eps}, momentum={self.momentum}"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The normalised x, of x's shape; x has the type of the statistics."""
        channels = self.axis % x.dim()
        if self.training and not self.frozen:
            return self.by_batch(x, channels)
        return self.normalised(x, channels, self.running_mean, self.running_var)

    def by_batch(self, x: torch.Tensor, channels: int) -> torch.Tensor:
        """x, normalised by its own mean and variance; moves the running ones.

        torch's kernel adds up row by row. It is given x less its mean, so that it loses no digits
        where a mean is large; the gradient is the same, since the mean cancels.
        """
        rows = x.movedim(channels, -1)
        flat = rows.reshape(-1, rows.shape[-1])
        count, mean = len(flat), flat.mean(0).detach()
        moved = torch.zeros_like(mean), torch.zeros_like(mean)  # as running ones, by momentum 1
        given = flat - mean, self.weight, self.bias, *moved
        y, _, _ = torch.native_batch_norm(*given, True, 1.0, self.eps)
        # torch moves to the unbiased variance, n / (n - 1) of the biased one, which is NaN of one
        # row.
        variance = moved[1] * ((count - 1) / count) if count > 1 else torch.zeros_like(mean)
        self.move(mean, variance, count)
        return y.reshape(rows.shape).movedim(-1, channels)

    def normalised(
        self, x: torch.Tensor, channels: int, mean: torch.Tensor, variance: torch.Tensor
    ) -> torch.Tensor:
        """x, normalised by statistics that are given."""
        x = x.view_as(x)  # gradients through mean and variance cancel here, before they are added
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        shift = -mean * scale
        if self.bias is not None:
            shift = shift + self.bias
        shape = [-1 if axis == channels else 1 for axis in range(x.dim())]
        return x * scale.reshape(shape) + shift.reshape(shape)

    @torch.no_grad()
    def move(self, mean: torch.Tensor, variance: torch.Tensor, count: int) -> None:
        """Moves the running statistics towards those of `count` values of each channel."""
        stored = variance * (count / (count - 1)) if self.unbiased and count > 1 else variance
        self.running_mean.lerp_(mean.detach(), self.momentum)
        self.running_var.lerp_(stored.detach(), self.momentum)
