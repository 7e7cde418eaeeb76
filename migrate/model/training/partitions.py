"""Conversion of gradients between the module, with whole tables in its own layout, and the graph,
with partitions in TensorFlow's layout."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import torch

from migrate.checkpoint.partitions import dealt_to
from migrate.model.training.targets import Target

Slice = Tuple[torch.Tensor, Optional[torch.Tensor]]  # values, and indices of a table's


def split(target: Target, gradient: torch.Tensor) -> Dict[str, Slice]:
    """The gradient per partition, in TensorFlow's layout."""
    nodes = list(target.updates)
    if not gradient.is_sparse:
        whole = in_tensorflow(target, gradient)
        return {node: (whole[rows], None) for node, rows in zip(nodes, rows_of(target))}
    rows, values = gradient._indices()[0], gradient._values()
    if len(nodes) == 1:
        return {nodes[0]: (values, rows)}
    parts: Dict[str, Slice] = {}
    number, local = _places(target, rows)
    for k, node in enumerate(nodes):
        own = number == k
        parts[node] = values[own], local[own]
    return parts


def rows_of(target: Target) -> List[Any]:
    """The index of each partition's rows in the whole; `...` for a whole, perhaps a scalar."""
    dealt = target.parameter.dealt
    if len(target.updates) == 1:
        return [...]
    if dealt > 1:
        return [dealt_to(k, dealt) for k in range(dealt)]
    ends = [*target.starts[1:], None]
    return [slice(start, end) for start, end in zip(target.starts, ends)]


def _places(target: Target, rows: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """(partition, row in it) of each row of the table."""
    dealt = target.parameter.dealt
    if dealt > 1:
        return rows % dealt, rows // dealt
    # "div": a partition has the rows from its start to the next partition's.
    starts = torch.tensor(target.starts, device=rows.device)
    number = torch.searchsorted(starts, rows, right=True) - 1
    return number, rows - starts[number]


def join(target: Target, slices: Mapping[str, Slice]) -> torch.Tensor:
    """The gradient of the whole, in the module's layout."""
    if all(slices[node][1] is None for node in target.updates):
        parts = [slices[node][0] for node in target.updates]
        if len(parts) == 1:
            return in_module(target, parts[0])
        whole = torch.cat(parts)
        for part, own in zip(parts, rows_of(target)):
            whole[own] = part
        return in_module(target, whole)
    rows: List[torch.Tensor] = []
    for k, node in enumerate(target.updates):
        indices, dealt = slices[node][1], target.parameter.dealt
        assert indices is not None, node
        if len(target.updates) > 1:
            indices = indices * dealt + k if dealt > 1 else indices + target.starts[k]
        rows.append(indices.long())
    values = torch.cat([slices[node][0] for node in target.updates])
    return torch.sparse_coo_tensor(
        torch.cat(rows).unsqueeze(0), values, target.tensor.shape, check_invariants=False
    )


def in_tensorflow(target: Target, tensor: torch.Tensor) -> torch.Tensor:
    axes = target.parameter.axes
    if axes is None:
        return tensor.detach()
    return tensor.detach().permute([axes.index(axis) for axis in range(len(axes))])


def in_module(target: Target, tensor: torch.Tensor) -> torch.Tensor:
    axes = target.parameter.axes
    return tensor if axes is None else tensor.permute(axes)
