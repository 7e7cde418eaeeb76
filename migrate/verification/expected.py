"""The rows that the target should have, computed from the source again, by other code.

The conversion's own transforms (`migrate.manifest.transforms`) are not used, on purpose: torch
makes the casts, FBGEMM the 8-bit rows.
"""

from __future__ import annotations

from typing import Callable, Dict

import numpy
import torch

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import row_blocks
from migrate.manifest.manifest import Written
from migrate.manifest.quantization import HEAD
from semisync.encoding.dtypes import BFLOAT16, number_type


def expected_rows(checkpoint: Checkpoint, written: Written, first: int, count: int) -> torch.Tensor:
    """The rows that the target should have of a tensor of the checkpoint."""
    if written.value is not None:
        return torch.full((1,), written.value, dtype=getattr(torch, written.dtype))
    return expected(_source_rows(checkpoint, written, first, count), written)


def expected(values: numpy.ndarray, written: Written) -> torch.Tensor:
    """`values`, rows of the source, as the tensor `written` of the target should have them."""
    return _MADE[written.transform](as_tensor(values), getattr(torch, written.dtype))


def _quantized(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """FBGEMM's own 8-bit rows, scale and bias put first."""
    import fbgemm_gpu  # noqa: F401  it registers the operator

    fused = torch.ops.fbgemm.FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf(values.float(), 8)
    return torch.cat([fused[:, -HEAD:], fused[:, :-HEAD]], dim=1)


# The expected rows, by the transform that the manifest names.
_MADE: Dict[str, Callable[[torch.Tensor, torch.dtype], torch.Tensor]] = {
    "copy": lambda values, dtype: values,
    "cast": lambda values, dtype: values.to(dtype),
    "int8": _quantized,
    "row_mean": lambda values, dtype: values.double().reshape(len(values), -1).mean(1).to(dtype),
    "hours": lambda values, dtype: torch.div(values, 3600, rounding_mode="floor").to(dtype),
}


def _source_rows(checkpoint: Checkpoint, written: Written, first: int, count: int) -> numpy.ndarray:
    name = written.source
    info = checkpoint[name]
    if not info.shape:
        return checkpoint.read(name).reshape(1)
    if written.partition_strategy != "mod":
        return checkpoint.read(name, rows=slice(first, first + count))
    blocks = row_blocks(info, name)
    ids = numpy.arange(first, first + count)
    out = numpy.empty((count, *info.shape[1:]), number_type(info.dtype))
    for part, (start, _) in enumerate(blocks):
        # Written out again: `dealt_to`, the conversion's own, is what is checked here.
        mine = slice((part - first) % len(blocks), count, len(blocks))
        local = ids[mine] // len(blocks)
        if len(local):
            rows = slice(start + int(local[0]), start + int(local[-1]) + 1)
            out[mine] = checkpoint.read(name, rows=rows)
    return out


def as_tensor(values: numpy.ndarray) -> torch.Tensor:
    """`values` as a tensor of the same memory; `BFLOAT16` becomes torch.bfloat16."""
    if values.dtype == BFLOAT16:
        return torch.from_numpy(values.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def as_bytes(rows: torch.Tensor) -> numpy.ndarray:
    """`rows` [n, ...] as uint8 [n, bytes per row]."""
    flat = rows.contiguous().reshape(len(rows), -1)
    if not flat.numel():
        return numpy.empty((len(rows), 0), numpy.uint8)
    data: numpy.ndarray = flat.view(torch.uint8).numpy()
    return data
