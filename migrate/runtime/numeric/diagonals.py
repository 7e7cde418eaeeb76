"""Diagonals of matrices, one or a band of them.

k      the lowest and the highest diagonal, or one number for both; 0 is the main one, 1 above it
band   [..., diagonals, longest], the highest first; [..., longest] of one diagonal
align  on which side of its row a shorter diagonal lies: those above the main one, those below
Source: tensorflow/core/kernels/linalg/matrix_diag_op.cc
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers
from semisync.common.errors import BadInput


def matrix_diag(
    band: Tensor, k: Any, rows: int, columns: int, beside: Any, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Matrices with these diagonals, and `beside` elsewhere; -1 rows or columns: as few as fit."""
    low, high = _ends(k)
    longest = band.shape[-1]
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if rows == columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    # As TensorFlow's kernel checks: one of the two is as small as the diagonals allow.
    if (
        rows < least_rows
        or columns < least_columns
        or (rows != least_rows and columns != least_columns)
    ):
        raise BadInput(
            f"diagonals {low} to {high} of {longest} values do not fit {rows} x {columns} matrices"
        )
    inside, places = _places(low, high, rows, columns, longest, align, band.device)
    flat = band.reshape(*band.shape[: band.ndim - (1 if low == high else 2)], -1)
    other = torch.as_tensor(beside, dtype=band.dtype, device=band.device)
    return torch.where(inside, flat[..., places], other)


def matrix_diag_part(x: Tensor, k: Any, beside: Any, align: str = "RIGHT_LEFT") -> Tensor:
    """The band of matrices, with `beside` where a diagonal is shorter than the longest."""
    low, high = _ends(k)
    rows, columns = x.shape[-2:]
    longest = _longest(low, high, rows, columns)
    inside, places = _places(low, high, rows, columns, longest, align, x.device)
    size = (high - low + 1) * longest
    found = torch.full((size,), rows * columns, device=x.device)
    found[places[inside]] = torch.arange(rows * columns, device=x.device)[inside.reshape(-1)]
    other = torch.as_tensor(beside, dtype=x.dtype, device=x.device).expand(*x.shape[:-2], 1)
    band = torch.cat([x.reshape(*x.shape[:-2], -1), other], -1)[..., found]
    return band if low == high else band.reshape(*x.shape[:-2], high - low + 1, longest)


def matrix_set_diag(x: Tensor, k: Any, band: Tensor, align: str = "RIGHT_LEFT") -> Tensor:
    """x with these diagonals."""
    low, high = _ends(k)
    rows, columns = x.shape[-2:]
    longest = _longest(low, high, rows, columns)
    shape = list(x.shape[:-2]) + ([] if low == high else [high - low + 1]) + [longest]
    if list(band.shape) != shape:
        raise BadInput(f"diagonals of shape {list(band.shape)}, expected {shape}")
    inside, places = _places(low, high, rows, columns, longest, align, x.device)
    return torch.where(inside, band.reshape(*x.shape[:-2], -1)[..., places], x)


def _ends(k: Any) -> Tuple[int, int]:
    ends = integers(k)
    if ends[0] > ends[-1]:
        raise BadInput(f"the lowest diagonal is {ends[0]}, above the highest, {ends[-1]}")
    return ends[0], ends[-1]


def _longest(low: int, high: int, rows: int, columns: int) -> int:
    if not (-rows < low and high < columns) and (low, high) != (0, 0):
        raise BadInput(f"{rows} x {columns} matrices do not have the diagonals {low} to {high}")
    return min(rows + min(high, 0), columns - max(low, 0))


def _places(
    low: int, high: int, rows: int, columns: int, longest: int, align: str, device: torch.device
) -> Tuple[Tensor, Tensor]:
    """Whether each element of a matrix is on the diagonals, and its position in the flattened band,
    or 0."""
    row = torch.arange(rows, device=device).unsqueeze(1)
    column = torch.arange(columns, device=device)
    which = column - row
    inside = (which >= low) & (which <= high)
    above, below = align.split("_")
    lengths = torch.minimum(rows + which.clamp(max=0), columns - which.clamp(min=0))
    right = ((which > 0) & (above == "RIGHT")) | ((which < 0) & (below == "RIGHT"))
    # The main diagonal belongs to both sides, and is on the left if either is.
    right |= (which == 0) & (align == "RIGHT_RIGHT")
    offset = torch.where(right, longest - lengths, 0)
    places = (high - which) * longest + torch.minimum(row, column) + offset
    return inside, torch.where(inside, places, 0)
