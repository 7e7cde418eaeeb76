"""The copy of a training's tensors that is written while the training goes on.

Its memory is kept for the next copy: to fill it again takes a fraction of the time that fresh pages
take. torch's own stagers cannot copy sharded tensors.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, Optional

import torch
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor, ShardMetadata
from torch.distributed.checkpoint.staging import AsyncStager
from torch.distributed.remote_device import _remote_device


class Copies(AsyncStager):
    """For torch.distributed.checkpoint.async_save, one save at a time."""

    # async_save need not wait: `stage` has copied all when it returns.
    _synchronize_after_execute = False

    def __init__(self) -> None:
        self._kept: Dict[str, torch.Tensor] = {}

    def stage(self, state_dict: Dict[str, Any]) -> Dict[str, Any]:
        """The copy of a flat dict of tensors, whole or sharded."""
        kept, self._kept = self._kept, {}
        return {name: self._copied(name, value, kept) for name, value in state_dict.items()}

    def synchronize_staging(self) -> None:
        """Does nothing: `stage` has copied all."""

    def close(self) -> None:
        """Gives the memory back."""
        self._kept.clear()

    def _copied(self, name: str, value: Any, kept: Dict[str, torch.Tensor]) -> Any:
        if not isinstance(value, ShardedTensor):
            return self._copy(name, value, kept.get(name))
        shards = []
        for number, shard in enumerate(value.local_shards()):
            key = f"{name} {number}"
            copied = self._copy(key, shard.tensor, kept.get(key))
            shards.append(Shard(copied, _on_the_cpu(shard.metadata)))
        metadata = value.metadata()
        there = dataclasses.replace(
            metadata, shards_metadata=[_on_the_cpu(shard) for shard in metadata.shards_metadata]
        )
        return ShardedTensor._init_from_local_shards_and_global_metadata(
            shards, there, process_group=value._process_group
        )

    def _copy(self, key: str, value: torch.Tensor, into: Optional[torch.Tensor]) -> torch.Tensor:
        value = value.detach()
        if into is None or into.shape != value.shape or into.dtype != value.dtype:
            into = torch.empty(value.shape, dtype=value.dtype)
        self._kept[key] = into.copy_(value)
        return into


def _on_the_cpu(shard: ShardMetadata) -> ShardMetadata:
    """A shard's metadata with the copy's device, of the same process."""
    assert isinstance(shard.placement, _remote_device)
    return dataclasses.replace(
        shard, placement=_remote_device(f"rank:{shard.placement.rank()}/cpu")
    )
