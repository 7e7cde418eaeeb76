"""The initial vector of a new id: by its table, its id and a seed alone.

An id therefore begins with the same vector whenever it comes, in whatever process, however many
there are; and again, after it was evicted.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol, Union

import numpy
import torch


class Initializer(Protocol):
    """The initializer of new ids' vectors: anything with this method.

    Examples:
        >>> from migrate.id_tables import Initializer, Normal
        >>> initializer: Initializer = Normal(std=0.01)
    """

    def __call__(self, ids: numpy.ndarray, dim: int, seed: int) -> torch.Tensor:
        """The vectors of int64 ids [n]: float32 [n, dim]; seed: below 2^64."""


@dataclass(frozen=True)
class Constant:
    """One value everywhere.

    Args:
        value: of every number of a vector.

    Examples:
        >>> from migrate.id_tables import Constant, IdTable
        >>> table = IdTable("user", 16, ["user"], initializer=Constant(0.1))
    """

    value: float = 0.0

    def __call__(self, ids: numpy.ndarray, dim: int, seed: int) -> torch.Tensor:
        """See Initializer."""
        return torch.full((len(ids), dim), self.value, dtype=torch.float32)


@dataclass(frozen=True)
class Uniform:
    """Uniform in [low, high).

    Args:
        low: the least value.
        high: the bound of the largest.

    Examples:
        >>> from migrate.id_tables import IdTable, Uniform
        >>> table = IdTable("user", 16, ["user"], initializer=Uniform(-0.01, 0.01))
    """

    low: float = -0.05
    high: float = 0.05

    def __call__(self, ids: numpy.ndarray, dim: int, seed: int) -> torch.Tensor:
        """See Initializer."""
        from semisync.common.compiled import draws

        drawn = torch.from_numpy(draws.uniform(ids, numpy.uint64(seed), dim))
        return drawn.mul_(self.high - self.low).add_(self.low)


@dataclass(frozen=True)
class Normal:
    """Normally distributed.

    Args:
        mean: of the distribution.
        std: its standard deviation.

    Examples:
        >>> from migrate.id_tables import IdTable, Normal
        >>> table = IdTable("user", 16, ["user"], initializer=Normal(std=0.01))
    """

    mean: float = 0.0
    std: float = 0.05
    _most = math.inf  # standard deviations

    def __call__(self, ids: numpy.ndarray, dim: int, seed: int) -> torch.Tensor:
        """See Initializer."""
        from semisync.common.compiled import draws

        drawn = torch.from_numpy(draws.normal(ids, numpy.uint64(seed), dim, self._most))
        return drawn.mul_(self.std).add_(self.mean)


@dataclass(frozen=True)
class TruncatedNormal(Normal):
    """Normal, drawn again beyond two standard deviations, as tf.truncated_normal_initializer.

    Args:
        mean: of the distribution.
        std: its standard deviation, before it is truncated.

    Examples:
        >>> from migrate.id_tables import IdTable, TruncatedNormal
        >>> table = IdTable("user", 16, ["user"], initializer=TruncatedNormal(std=0.01))
    """

    _most = 2.0


def seed_of(seed: Union[int, torch.Generator], table: str) -> int:
    """The seed of one table, below 2^64, so that tables begin differently.

    Args:
        seed: the same in all processes; of a generator its initial seed.
    """
    number = seed.initial_seed() if isinstance(seed, torch.Generator) else int(seed)
    return int.from_bytes(hashlib.sha256(f"{number} {table}".encode()).digest()[:8], "little")
