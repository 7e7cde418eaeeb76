"""Optimizers' slots: from TensorFlow's names to the names that torch gives the same numbers.

TensorFlow names the k-th slot of a variable `<variable>/<optimizer>` and `<variable>/<optimizer>_k`
(k from 1). `<optimizer>` is the `name=` of the tf.train.Optimizer; where that is not a default
one, the training ops of the MetaGraph (ApplyAdam, SparseApplyAdagrad, ...) tell what it stands for.

Names on the other side:
    table   what FBGEMM's fused optimizers call it (Adagrad: momentum1), else what torch.optim does
    dense   what torch.optim calls it (Adagrad: sum; Adam: exp_avg, exp_avg_sq)
Where neither side has the optimizer, TensorFlow's word for the slot is kept.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from migrate.graph import Graph
from migrate.lookups import Saved
from migrate.sources.info import TensorInfo
from migrate.sources.kinds import OPTIMIZERS
from semisync.errors import BadInput

_NAMES: Dict[str, Tuple[str, ...]] = {
    "Adadelta": ("square_avg", "acc_delta"),
    "Adagrad": ("sum",),
    "AdagradDA": ("gradient_accumulator", "gradient_squared_accumulator"),
    "Adam": ("exp_avg", "exp_avg_sq"),
    "AdamAsync": ("exp_avg", "exp_avg_sq"),  # its third and fourth, the powers of beta, are scalars
    "AdaMax": ("exp_avg", "exp_inf"),
    "Ftrl": ("accum", "linear"),
    "Momentum": ("momentum_buffer",),
    "ProximalAdagrad": ("accumulator",),
    "RMSProp": ("square_avg", "momentum_buffer"),
}
_CENTERED_RMSPROP = ("square_avg", "grad_avg", "momentum_buffer")
_FUSED = {"Adagrad": ("momentum1",)}

# Training op, without "Resource" and "Sparse", and the input that holds the first slot.
_FIRST_SLOT = {
    "ApplyAdadelta": ("Adadelta", 1),
    "ApplyAdagrad": ("Adagrad", 1),
    "ApplyAdagradDA": ("AdagradDA", 1),
    "ApplyAdagradV2": ("Adagrad", 1),
    "ApplyAdam": ("Adam", 1),
    "ApplyAdamAsync": ("AdamAsync", 1),
    "ApplyAdaMax": ("AdaMax", 1),
    "ApplyCenteredRMSProp": ("RMSProp", 2),  # inputs: var, mg, ms, mom
    "ApplyFtrl": ("Ftrl", 1),
    "ApplyFtrlV2": ("Ftrl", 1),
    "ApplyMomentum": ("Momentum", 1),
    "ApplyProximalAdagrad": ("ProximalAdagrad", 1),
    "ApplyRMSProp": ("RMSProp", 1),
}


class Slots(NamedTuple):
    """The slots of one variable: sources[k] is the tensor of the k-th."""

    optimizer: str
    sources: Dict[int, str]


def optimizer_names(graph: Optional[Graph], saved: Mapping[str, Saved]) -> Dict[str, str]:
    """What each last part of a slot's name stands for: {"Adagrad": "Adagrad", "MyAdam": "Adam"}."""
    found: Dict[str, str] = {}
    for node in graph.nodes.values() if graph else ():
        op = node.op.replace("Resource", "").replace("Sparse", "")
        optimizer, position = _FIRST_SLOT.get(op, ("", 0))
        if not optimizer or len(node.inputs) <= position:
            continue
        slot = saved.get(node.inputs[position][0])
        if slot is None:
            continue
        leaf = slot.name.rpartition("/")[2]
        if found.setdefault(leaf, optimizer) != optimizer:
            raise BadInput(
                f"{graph.path if graph else ''}: slots named {leaf!r} belong both to "
                f"{found[leaf]} and to {optimizer}; such a checkpoint cannot be converted"
            )
    return {**{name: name for name in OPTIMIZERS}, **found}


def find_slots(tensors: Mapping[str, TensorInfo], names: Mapping[str, str]) -> Dict[str, Slots]:
    """The slots of each variable that has some. BadInput where two optimizers claim a variable."""
    found: Dict[str, Slots] = {}
    for name, info in tensors.items():
        variable, _, leaf = name.rpartition("/")
        owner = tensors.get(variable)
        kind = slot_of(leaf, names)
        if owner is None or kind is None or owner[:2] != info[:2]:
            continue
        optimizer, index = kind
        slots = found.setdefault(variable, Slots(optimizer, {}))
        if slots.optimizer != optimizer or index in slots.sources:
            raise BadInput(
                f"variable {variable!r} has slots of two optimizers, {name!r} and "
                f"{next(iter(slots.sources.values()))!r}; save it with one and convert again"
            )
        slots.sources[index] = name
    return found


def slot_of(leaf: str, names: Mapping[str, str]) -> Optional[Tuple[str, int]]:
    """(optimizer, k) for the last part of a slot's name."""
    if leaf in names:
        return names[leaf], 0
    base, _, index = leaf.rpartition("_")
    if base in names and index.isdigit():
        return names[base], int(index)
    return None


def torch_names(slots: Slots, fused: bool) -> List[Optional[str]]:
    """For each source in order of k: its name in torch, None where it has no meaning.

    fused: the variable is an embedding table, else it is dense.
    """
    names = _NAMES[slots.optimizer]
    if slots.optimizer == "RMSProp" and 2 in slots.sources:
        names = _CENTERED_RMSPROP
    if fused:
        names = _FUSED.get(slots.optimizer, names)
    return [names[k] if k < len(names) else None for k in sorted(slots.sources)]
