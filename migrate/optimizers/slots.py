"""The slots of one variable: from TensorFlow's names to torch's names of the same numbers.

TensorFlow names the k-th slot of a variable `<variable>/<optimizer>` and `<variable>/<optimizer>_k`
(k from 1). `<optimizer>` is the `name=` of the tf.train.Optimizer; where that is not a default
one, the training ops of the MetaGraph identify it (`migrate.graph.training`).

Names on the other side:
    table   the name in FBGEMM's fused optimizers (Adagrad: momentum1), else torch.optim's
    dense   the name in torch.optim (Adagrad: sum; Adam: exp_avg, exp_avg_sq)
Where neither side has the optimizer, TensorFlow's word for the slot is kept.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from migrate.optimizers.adam import LAZY_ADAM
from migrate.optimizers.record import Slot
from migrate.optimizers.registry import FUSED_STATES, LEAVES, OPTIMIZERS

DEFAULT_NAMES: Mapping[str, str] = {leaf: leaf for leaf in LEAVES}


class Slots(NamedTuple):
    """The slots of one variable, and the known facts of its optimizer.

    Attributes:
        optimizer: TensorFlow's name of it, by which its slots are named.
        sources: k -> tensor of the checkpoint that is the k-th slot.
        hyperparameters: None for one that is not a constant, or not the same for all parts.
        lazy: Adam that moves the rows of the batch alone (LazyAdam).
        by_graph: whether training ops of the MetaGraph say so.
        power: the checkpoint's scalar that gives the number of updates, where a training
            op names it and all parts have the same.
    """

    optimizer: str
    sources: Dict[int, str]
    hyperparameters: Dict[str, Optional[float]] = {}
    lazy: bool = False
    by_graph: bool = False
    power: Optional[str] = None

    @property
    def variant(self) -> str:
        """The optimizer's name, which is "LazyAdam" if it is lazy."""
        return LAZY_ADAM.name if self.lazy else self.optimizer

    @property
    def constants(self) -> Dict[str, float]:
        """The hyperparameters that are known."""
        return {name: value for name, value in self.hyperparameters.items() if value is not None}


def slot_of(leaf: str, names: Mapping[str, str] = DEFAULT_NAMES) -> Optional[Tuple[str, int]]:
    """(optimizer, k) for the last part of a slot's name.

    Args:
        names: prefix before _k -> its optimizer.
    """
    if leaf in names:
        return names[leaf], 0
    base, _, index = leaf.rpartition("_")
    if base in names and index.isdecimal():
        return names[base], int(index)
    return None


def initial_value(optimizer: str, number: int) -> Optional[float]:
    """TensorFlow's default for the slot `number`; None for one that the optimizer lacks."""
    slots = OPTIMIZERS[optimizer].all_slots
    return slots[number].initial if number < len(slots) else None


def torch_names(slots: Slots, fused: bool) -> List[Optional[str]]:
    """For each source in order of k: its name in torch, None where it has no meaning.

    Args:
        fused: the variable is an embedding table, else it is dense.
    """
    known = OPTIMIZERS[slots.optimizer].slots_for(slots.sources)
    return [torch_name(known[k], fused) if k < len(known) else None for k in sorted(slots.sources)]


def torch_name(slot: Slot, fused: bool) -> str:
    """The slot's name in torch; `fused` as for `torch_names`."""
    return slot.fused or slot.torch if fused else slot.torch


def state_name(table: str, slot: str) -> str:
    """The state's name in the optimizer of a table: FBGEMM's has the table's name before it."""
    return f"{table}.{slot}" if slot in FUSED_STATES else slot


def unfused_name(table: str, state: str) -> str:
    """torch.optim's name of a slot, for the result of `state_name`."""
    start, _, slot = state.rpartition(".")
    return FUSED_STATES.get(slot, state) if start == table else state
