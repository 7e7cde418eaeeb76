"""A module of one's own over several processes: its EmbeddingCollections by TorchRec's
DistributedModelParallel, the rest by DistributedDataParallel.

Adam trains dense weights. Adagrad trains the tables, of several processes within the backward pass,
by FBGEMM's kernels, and the rows of the batch alone. A step has one look-up of each table.
"""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
from torch import nn

from migrate.training.distributed.sharding import Table, fill, fused_optimizers, wrapped
from migrate.training.embedding_tables import tables_of
from migrate.training.task import Task

_EPSILON = 1e-10


class DenseAndTables:
    """The optimizers of both as one, whose learning rates count from `zero_grad` on.

    Args:
        dense: by name.
        tables: by the weight's name its optimizer, and the sum of squares that it has, whole or
            sharded.
    """

    def __init__(
        self, dense: Dict[str, nn.Parameter], rate: float, tables: Dict[str, Tuple[Any, Any]]
    ) -> None:
        self._dense, self._tables = dense, tables
        self._adam = torch.optim.Adam(dense.values(), rate)
        for parameter in dense.values():  # which it would make in its first step
            moments = {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
            self._adam.state[parameter] = {"step": torch.tensor(0.0), **moments}

    @property
    def param_groups(self) -> List[Dict[str, Any]]:
        """The parameter groups of all."""
        of_tables = [group for one, _ in self._tables.values() for group in one.param_groups]
        return [*self._adam.param_groups, *of_tables]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears all gradients and passes the learning rates to the kernels."""
        for one in (self._adam, *(one for one, _ in self._tables.values())):
            one.zero_grad(set_to_none)

    def step(self) -> None:
        """Steps all; the kernels of the tables have stepped already."""
        for one in (self._adam, *(one for one, _ in self._tables.values())):
            one.step()

    def named_slots(self) -> Dict[Tuple[str, str], Any]:
        """(the parameter's name, the slot's) to its tensor, whole or sharded."""
        slots = {
            (name, slot): value
            for name, parameter in self._dense.items()
            for slot, value in self._adam.state[parameter].items()
        }
        return {**slots, **{(name, "sum"): total for name, (_, total) in self._tables.items()}}


def distribute_own(module: nn.Module, rate: float, table_rate: float, device: torch.device) -> Task:
    """A module over all processes, with optimizers that begin; all processes have the same.

    Args:
        device: of this process, as `migrate.training.joined` gives it.
    """
    tables = list(tables_of(module))
    names = [place.attribute for place in tables]
    if not torch.distributed.is_initialized():
        module.to(device)
        weights: Any = {place.attribute: place.members[place.name].weight for place in tables}
        alone = {
            name: torch.optim.Adagrad([weight], table_rate, eps=_EPSILON)
            for name, weight in weights.items()
        }
        totals = {name: one.state[weights[name]]["sum"] for name, one in alone.items()}
        dense = {name: one for name, one in module.named_parameters() if name not in names}
        both = {name: (alone[name], totals[name]) for name in names}
        return Task(module, DenseAndTables(dense, rate, both))
    return _sharded(module, rate, table_rate, device)


def _sharded(module: nn.Module, rate: float, table_rate: float, device: torch.device) -> Task:
    from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

    # Before sharding, which draws the tables again.
    values = {name: value.detach().clone() for name, value in module.state_dict().items()}
    tables = []
    for place in tables_of(module):
        weight: Any = place.members[place.name].weight
        settings = {"lr": table_rate, "eps": _EPSILON}
        apply_optimizer_in_backward(torch.optim.Adagrad, [weight], settings)
        tables.append(Table(place.path, place.attribute, place.name, weight, True))
    model = wrapped(module, tables, device=device)
    fill(model.state_dict(), values)
    fused = {}
    for name, key, optimizer in fused_optimizers(model.fused_optimizer):
        state = optimizer.state[optimizer.params[key]]
        totals = [value for slot, value in state.items() if slot.endswith("momentum1")]
        # A process without a part of a table has no state of it.
        fused.update({name: (optimizer, *totals)} if totals else {})
    dense = {
        name: parameter
        for name, parameter in model.named_parameters()
        if name not in {table.attribute for table in tables}
    }
    return Task(model, DenseAndTables(dense, rate, fused))
