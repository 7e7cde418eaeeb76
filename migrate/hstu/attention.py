"""HSTU's attention: pointwise, without a softmax, with a bias by distance in places and in time."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

_STEP = 0.301  # ln of a bucket's width: about the log of 2 to the base 10, as the authors have it


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, length: int) -> Tensor:
    """What each token takes from those up to its own: [batch, heads, n, dim of a value].

    query, key: [batch, heads, n, dim]; value: [batch, heads, n, any]; bias: [batch, n, n], or with
    1 for batch. length: the longest sequence, by which the sum is divided.
    """
    n = query.shape[-2]
    scores = F.silu(query @ key.transpose(-1, -2) + bias.unsqueeze(1)) / length
    past = torch.ones(n, n, dtype=torch.bool, device=query.device).tril()
    return torch.where(past, scores, 0.0) @ value


def bucket(ages: Tensor, buckets: int) -> Tensor:
    """That of each age, in any unit: floor(ln(max(1, |age|)) / 0.301), at most buckets - 1."""
    logs = ages.abs().clamp(min=1).float().log() / _STEP
    return logs.long().clamp(max=buckets - 1)


class RelativeBias(nn.Module):
    """A learned number for each distance in places, below `length`, and each bucket of ages."""

    def __init__(self, length: int, buckets: int = 64) -> None:
        super().__init__()
        self.length, self.buckets = length, buckets
        self.position = nn.Parameter(torch.randn(length) * 0.02)
        self.time = nn.Parameter(torch.randn(buckets) * 0.02)

    def forward(self, times: Tensor) -> Tensor:
        """times: [batch, n], when each token was; the bias is [batch, n, n]. What lies above the
        diagonal has no meaning."""
        places = torch.arange(times.shape[1], device=times.device)
        distances = (places.unsqueeze(1) - places).clamp(min=0)
        ages = bucket(times.unsqueeze(2) - times.unsqueeze(1), self.buckets)
        return self.position[distances] + self.time[ages]
