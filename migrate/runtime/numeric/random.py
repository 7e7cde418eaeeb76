"""Random values for which torch has no function that returns a new tensor, and the sampled classes
of a loss over many classes.

Classes are drawn one by one. If they must be distinct, repeated ones are rejected and drawn again
until there are enough. The expected count of a class of probability p is then 1 - (1 - p)^draws; if
no draw was rejected, p * count.

Source: tensorflow/core/kernels/range_sampler.cc
"""

from __future__ import annotations

import math
from typing import Any, Callable, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers
from migrate.runtime.numeric.sets import first_places

Sampled = Tuple[Tensor, Tensor, Tensor]


def truncated_normal(shape: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Standard normal values, drawn again until they are within -2 and 2."""
    return torch.nn.init.trunc_normal_(torch.empty(integers(shape), dtype=dtype), a=-2.0, b=2.0)


def shuffle(x: Tensor) -> Tensor:
    """The rows of x in a random order."""
    return x[torch.randperm(len(x), device=x.device)]


def log_uniform_candidates(classes: Tensor, count: int, unique: bool, limit: int) -> Sampled:
    """Samples `count` classes of 0..limit-1: P(k) = log((k + 2) / (k + 1)) / log(limit + 1).

    Returns:
        The sampled classes [count], int64; expected counts of `classes` and of these, float32.
    """
    log_limit = math.log(limit + 1)

    def draw(number: int) -> Tensor:
        values = torch.rand(number, dtype=torch.float64, device=classes.device) * log_limit
        return (values.exp().long() - 1) % limit  # rounding may yield the limit itself

    def probability(of: Tensor) -> Tensor:
        number = of.double()
        return ((number + 2) / (number + 1)).log() / log_limit

    return _sampled(classes, count, unique, draw, probability)


def uniform_candidates(classes: Tensor, count: int, unique: bool, limit: int) -> Sampled:
    """As `log_uniform_candidates`, with equally likely classes."""

    def draw(number: int) -> Tensor:
        return torch.randint(limit, (number,), device=classes.device)

    def probability(of: Tensor) -> Tensor:
        return torch.full_like(of, 1 / limit, dtype=torch.float64)

    return _sampled(classes, count, unique, draw, probability)


def _sampled(
    classes: Tensor,
    count: int,
    unique: bool,
    draw: Callable[[int], Tensor],
    probability: Callable[[Tensor], Tensor],
) -> Sampled:
    drawn = draw(count)
    draws = count
    if unique:
        first, _ = first_places(drawn)
        while len(first) < count:
            drawn = torch.cat([drawn, draw(len(drawn))])
            first, _ = first_places(drawn)
        draws = int(first[count - 1]) + 1
        drawn = drawn[first[:count]]

    def expected(of: Tensor) -> Tensor:
        each = probability(of)
        # 1 - (1 - p)^draws, without losing the digits of a small p.
        several = each * count if draws == count else -torch.expm1(draws * torch.log1p(-each))
        return several.float()

    return drawn, expected(classes), expected(drawn)
