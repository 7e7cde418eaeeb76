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
        x = x.view_as(x)  # gradients through mean and variance cancel here, before they are added
        mean, variance = (
            self._statistics(x, channels) if self.training and not self.frozen else self._running()
        )
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is not None:
            scale = scale * self.weight
        shift = -mean * scale
        if self.bias is not None:
            shift = shift + self.bias
        shape = [-1 if axis == channels else 1 for axis in range(x.dim())]
        return x * scale.reshape(shape) + shift.reshape(shape)

    def _running(self) -> tuple:
        return self.running_mean, self.running_var

    def _statistics(self, x: torch.Tensor, channels: int) -> tuple:
        """The mean and variance of the batch; moves the running ones."""
        axes = [axis for axis in range(x.dim()) if axis != channels]
        variance, mean = torch.var_mean(x, axes, correction=0)
        self.move(mean, variance, x.numel() // max(mean.numel(), 1))
        return mean, variance

    @torch.no_grad()
    def move(self, mean: torch.Tensor, variance: torch.Tensor, count: int) -> None:
        """Moves the running statistics towards those of `count` values of each channel."""
        stored = variance * (count / (count - 1)) if self.unbiased and count > 1 else variance
        self.running_mean.lerp_(mean.detach(), self.momentum)
        self.running_var.lerp_(stored.detach(), self.momentum)
