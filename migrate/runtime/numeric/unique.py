"""Unique values in the order of their first occurrence; torch.unique sorts them."""

from __future__ import annotations

from typing import Any, Tuple

import numpy
import torch
from torch import Tensor

from migrate.runtime.strings import Strings


def unique(x: Any, counts: bool = False, dtype: str = "int32") -> Tuple[Any, ...]:
    """(values, indices into them[, counts]) of a vector of numbers or Strings."""
    first, inverse = first_places(x)
    number = getattr(torch, dtype)
    found = (x[first], inverse.to(number))
    if not counts:
        return found
    return (*found, torch.bincount(inverse, minlength=len(first)).to(number))


def list_diff(x: Any, y: Any, dtype: str = "int32") -> Tuple[Any, Tensor]:
    """(values of x that are not in y, their positions in x)."""
    if isinstance(x, Strings):
        inside = torch.from_numpy(numpy.isin(x.numpy(), y.numpy()))
    else:
        inside = torch.isin(x, y)
    return x[~inside], (~inside).nonzero().reshape(-1).to(getattr(torch, dtype))


def first_places(x: Any) -> Tuple[Tensor, Tensor]:
    """The positions of first occurrences, ascending, and each value's number among these."""
    if isinstance(x, Strings):
        codes = torch.tensor(x.arrow().dictionary_encode().indices.to_numpy(), dtype=torch.int64)
        count = int(codes.max()) + 1 if len(codes) else 0
    else:
        values, codes = torch.unique(x, return_inverse=True)
        count = len(values)
    places = torch.arange(len(codes), device=codes.device)
    first = torch.full((count,), len(codes), device=codes.device)
    first, order = first.scatter_reduce(0, codes, places, "amin").sort()
    return first, order.argsort()[codes]
