"""The rows that the target should have, made from the source once more, and another way."""

from __future__ import annotations

import numpy
import torch

from migrate.checkpoint.bundle import Checkpoint
from migrate.checkpoint.model import row_blocks
from migrate.encoding.dtypes import number_type
from migrate.manifest.model import Written
from migrate.manifest.quantization import HEAD
from migrate.manifest.tensors import as_tensor


def expected_rows(checkpoint: Checkpoint, written: Written, first: int, count: int) -> torch.Tensor:
    """The rows that the target should have, from the source."""
    dtype = getattr(torch, written.dtype)
    if written.value is not None:
        return torch.full((1,), written.value, dtype=dtype)
    values = _source_rows(checkpoint, written, first, count)
    if written.transform == "row_mean":
        return values.double().reshape(count, -1).mean(1).to(dtype)
    if written.transform == "int8":
        return _quantized(values)
    return values.to(dtype) if written.transform == "cast" else values


def _quantized(values: torch.Tensor) -> torch.Tensor:
    """FBGEMM's own 8-bit rows, scale and bias put first."""
    import fbgemm_gpu  # noqa: F401  it registers the operator

    fused = torch.ops.fbgemm.FloatOrHalfToFusedNBitRowwiseQuantizedSBHalf(values.float(), 8)
    return torch.cat([fused[:, -HEAD:], fused[:, :-HEAD]], dim=1)


def _source_rows(checkpoint: Checkpoint, written: Written, first: int, count: int) -> torch.Tensor:
    name = written.source
    info = checkpoint[name]
    if not info.shape:
        return as_tensor(checkpoint.read(name).reshape(1))
    if written.partition_strategy != "mod":
        return as_tensor(checkpoint.read(name, rows=slice(first, first + count)))
    blocks = row_blocks(info, name)
    ids = numpy.arange(first, first + count)
    out = numpy.empty((count, *info.shape[1:]), number_type(info.dtype))
    for part, (start, _) in enumerate(blocks):
        mine = slice((part - first) % len(blocks), count, len(blocks))
        local = ids[mine] // len(blocks)
        if len(local):
            rows = slice(start + int(local[0]), start + int(local[-1]) + 1)
            out[mine] = checkpoint.read(name, rows=rows)
    return as_tensor(out)
