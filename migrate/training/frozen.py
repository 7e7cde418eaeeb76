"""Tables that the graph does not train, kept in 16 or 8 bits: as float16, or in FBGEMM's rowwise
layout (migrate.manifest.quantization), a row as dim + 4 bytes.

Rows of fewer than 8 numbers, of which 8 bits save little or nothing, and rows of an odd number, for
which FBGEMM has no such layout, stay in 16 bits.
A table's values are rounded; nothing else changes, and look-ups give float32.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional

import numpy
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from migrate.manifest.quantization import HEAD, quantized
from migrate.training.embedding_tables import tables_of
from semisync.common.errors import BadInput

PRECISIONS = ("fp16", "int8")
_NARROW = 8


class Shrunk(NamedTuple):
    """The result for the tables, and the largest difference of any value."""

    tables: List[str]
    bytes_before: int
    bytes_after: int
    largest: float


class FrozenTable(nn.Module):
    """Replaces an nn.Embedding, or an nn.EmbeddingBag with its `mode`, by a constant table.

    Its values are those of the checkpoint that the training starts from, and not in the state dict.
    """

    rows: Tensor

    def __init__(self, weight: Tensor, precision: str, mode: Optional[str]) -> None:
        super().__init__()
        self.mode = mode
        if precision == "int8":
            stored = torch.from_numpy(quantized(weight.numpy()))
        else:
            stored = weight.half()
        self.register_buffer("rows", stored, persistent=False)

    def forward(
        self,
        input: Tensor,
        offsets: Optional[Tensor] = None,
        per_sample_weights: Optional[Tensor] = None,
    ) -> Tensor:
        """As the replaced module; `offsets` of an EmbeddingBag include the end of the last bag."""
        found = self.values(input)
        if self.mode is None:
            return found
        each = torch.arange(len(found), device=found.device)
        return F.embedding_bag(
            each,
            found,
            offsets,
            mode=self.mode,
            per_sample_weights=per_sample_weights,
            include_last_offset=True,
        )

    def values(self, ids: Tensor) -> Tensor:
        """The rows at `ids`, of any shape, as float32."""
        found = self.rows[ids]
        if found.dtype == torch.float16:
            return found.float()
        head = found[..., :HEAD].contiguous().view(torch.float16).float()
        return found[..., HEAD:] * head[..., :1] + head[..., 1:]


def shrink(module: nn.Module, trained: Any, precision: str) -> Shrunk:
    """Replaces the tables of TorchRec's collections that no optimizer steps.

    Args:
        module: the module that holds the collections.
        trained: the names of the parameters that an optimizer steps.
        precision: "fp16" or "int8".

    Returns:
        The replaced tables and the savings, a `Shrunk`.

    Raises:
        BadInput: a table has values that 16 bits cannot hold.

    Examples:
        >>> from migrate.torchrec import embedding_bag_collection
        >>> from migrate.training import shrink
        >>> tables = embedding_bag_collection("converted", {"products": ["item"]})
        >>> shrink(tables, trained=(), precision="fp16").bytes_after
        800
    """
    names: List[str] = []
    before = after = 0
    largest = 0.0
    for place in tables_of(module):
        table: Any = place.members[place.name]
        if isinstance(table, FrozenTable) or place.attribute in trained:
            continue
        weight = table.weight.detach()
        frozen = _frozen(place.name, weight, precision, getattr(table, "mode", None))
        place.members[place.name] = frozen
        names.append(place.name)
        before += weight.numel() * weight.element_size()
        after += frozen.rows.numel() * frozen.rows.element_size()
        largest = max(largest, _difference(frozen, weight))
    return Shrunk(names, before, after, largest)


def _frozen(name: str, weight: Tensor, precision: str, mode: Optional[str]) -> FrozenTable:
    dim = weight.shape[1]
    kept = "fp16" if dim < _NARROW or dim % 2 else precision
    frozen = FrozenTable(weight, kept, mode)
    if not numpy.isfinite(_difference(frozen, weight)):
        raise BadInput(f"the table {name!r} has values that 16 bits cannot hold; keep it as it is")
    return frozen


def _difference(frozen: FrozenTable, weight: Tensor) -> float:
    """The largest, in blocks, which need little memory; infinite or NaN where a value is."""
    ids = torch.arange(len(weight))
    found = [(frozen.values(own) - weight[own]).abs().max() for own in ids.split(1 << 16)]
    return float(torch.stack(found).max()) if found else 0.0
