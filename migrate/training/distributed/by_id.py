"""The tables by raw id of a converted model, over several processes.

1. An id belongs to process murmur(id) % processes, which alone has its row and slots, as in
   `migrate.id_tables`.
2. A process asks the owners for the ids of its share of the batch, and sends their initial values
   if it is new, since the graph computes that beside the ids. Of several that ask for one new id,
   the first process's word counts.
3. A step brings the gradients of the rows to the owners, as means over the processes.
4. A checkpoint has ids, rows and slots as in one process, those of process 0 first. Every process
   reads all of them and keeps its own.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Tuple

import numpy
import torch
from torch import Tensor, nn
from torch.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    ShardMetadata,
)
from torch.distributed._shard.sharded_tensor.metadata import TensorProperties
from torchrec.distributed.model_parallel import get_unwrapped_module

from migrate.id_tables.exchange import Processes
from migrate.id_tables.look_up import Asked, answers, ask, questions, to_owners
from migrate.model.training.graph_optimizer import GraphOptimizer
from migrate.runtime.tables.by_id import TableById


class SharedTable(TableById):
    """Replaces a TableById by this process's rows of it."""

    def __init__(self, table: TableById) -> None:
        super().__init__(0, table.weight.shape[1])
        self.weight, self.ids, self.default = table.weight, table.ids, table.default
        self.processes = Processes()
        self._awaited: List[Tuple[Tensor, Tensor, Asked, List[int]]] = []

    def forward(self, ids: Tensor, default: Tensor) -> Tensor:
        """As TableById's; all processes call it."""
        flat = ids.reshape(-1)
        asked = ask(flat.long().contiguous(), self.weight.shape[1], self.processes)
        first = numpy.empty(len(asked.unique), numpy.int64)
        # Backwards: of repeated places numpy keeps the last value, here the first occurrence.
        first[asked.places.numpy()[::-1]] = numpy.arange(len(flat))[::-1]
        begin = self.rows_of(default.detach(), len(flat))[torch.from_numpy(first)]
        (question,) = questions([asked], self.processes)
        (begins,) = to_owners([begin], [asked], [question.given], self.processes)
        own = super().forward(torch.from_numpy(question.ids), begins)
        (found,) = answers([own.detach()], [asked], [question.given], self.processes)
        if own.requires_grad:
            # A leaf: `collect` carries its gradient on to the owners.
            found.requires_grad_()
            self._awaited.append((found, own, asked, question.given))
        return found[asked.places].reshape(*ids.shape, -1)

    def collect(self) -> None:
        """Brings the gradients of the look-ups since the last step to the owners' weights."""
        awaited, self._awaited = self._awaited, []
        for found, own, asked, given in awaited:
            grad = torch.zeros_like(found) if found.grad is None else found.grad
            (own_grad,) = to_owners([grad], [asked], [given], self.processes)
            own.backward(own_grad / self.processes.ranks)

    def forget(self) -> None:
        """Drops the look-ups since the last step."""
        self._awaited.clear()


def share(module: nn.Module, optimizer: GraphOptimizer) -> List[str]:
    """Replaces every TableById of `module` by a SharedTable; returns the names of their tensors."""
    names = []
    for path, inner in list(module.named_modules()):
        if isinstance(inner, TableById):
            module.set_submodule(path, SharedTable(inner))
            names += [f"{path}.weight", f"{path}.ids"]
    keep_own(module, optimizer)
    return names


def shared(module: nn.Module) -> Dict[str, SharedTable]:
    """The tables of a module, wrapped or not, by their paths in it."""
    inner = get_unwrapped_module(module).named_modules()
    return {path: one for path, one in inner if isinstance(one, SharedTable)}


def keep_own(module: nn.Module, optimizer: Any) -> None:
    """Keeps this process's rows and slots of the whole tables."""
    for path, table in shared(module).items():
        own = torch.from_numpy(table.processes.own(table.ids.numpy()))
        for name, slot in _slots(path, table, optimizer).items():
            optimizer.state[table.weight][name] = slot[own]
        table.set_rows(table.ids[own], table.weight.detach()[own])


def whole(module: nn.Module, optimizer: Any, tensors: Mapping[str, Tensor]) -> Dict[str, Any]:
    """The `tensors` of shared tables, as parts of one tensor of all processes, which
    all call it.

    Args:
        tensors: as `migrate.training.state` names them.
    """
    found: Dict[str, Any] = {}
    for path, table in shared(module).items():
        ranks, rank = table.processes.ranks, table.processes.rank
        own = [len(table.ids) if number == rank else 0 for number in range(ranks)]
        counts = table.processes.total(own)
        names = [f"model.{path}.ids", f"model.{path}.weight"]
        names += [f"optim.{path}.weight.{slot}" for slot in _slots(path, table, optimizer)]
        for name in names:
            found[name] = _part(tensors[name].detach(), counts, rank)
    return found


def _slots(path: str, table: SharedTable, optimizer: GraphOptimizer) -> Dict[str, Tensor]:
    """The slots of a table's rows, by torch's names."""
    return {
        slot: optimizer.state[table.weight][slot]
        for slot in optimizer.slots.get(f"{path}.weight", {})
    }


def _part(own: Tensor, counts: List[int], rank: int) -> Any:
    """`own` as a shard of the tensor that has `counts` rows of each process."""
    if not sum(counts):
        return own
    shards = [
        ShardMetadata(
            [sum(counts[:number]), *([0] * (own.dim() - 1))],
            [count, *own.shape[1:]],
            f"rank:{number}/cpu",
        )
        for number, count in enumerate(counts)
    ]
    metadata = ShardedTensorMetadata(
        [shard for shard in shards if shard.shard_sizes[0]],
        torch.Size([sum(counts), *own.shape[1:]]),
        TensorProperties(own.dtype),
    )
    local = [Shard(own, shards[rank])] if len(own) else []
    return ShardedTensor._init_from_local_shards_and_global_metadata(local, metadata)
