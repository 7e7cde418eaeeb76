"""numpy's arrays as torch's tensors, and tensors as bytes: how both sides of a comparison meet."""

from __future__ import annotations

import numpy
import torch

from migrate.encoding.dtypes import BFLOAT16


def as_tensor(values: numpy.ndarray) -> torch.Tensor:
    """`values` as a tensor of the same memory; `BFLOAT16` becomes torch.bfloat16."""
    if values.dtype == BFLOAT16:
        return torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def as_bytes(rows: torch.Tensor) -> numpy.ndarray:
    """`rows` [n, ...] as uint8 [n, bytes a row]."""
    flat = rows.contiguous().reshape(len(rows), -1)
    if not flat.numel():
        return numpy.empty((len(rows), 0), numpy.uint8)
    found: numpy.ndarray = flat.view(torch.uint8).numpy()
    return found
