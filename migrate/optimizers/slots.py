"""Optimizers' slots: from TensorFlow's names to the names that torch gives the same numbers.

TensorFlow names the k-th slot of a variable `<variable>/<optimizer>` and `<variable>/<optimizer>_k`
(k from 1). `<optimizer>` is the `name=` of the tf.train.Optimizer; where that is not a default
one, the training ops of the MetaGraph tell what it stands for (`migrate.graph.training`).

Names on the other side:
    table   what FBGEMM's fused optimizers call it (Adagrad: momentum1), else what torch.optim does
    dense   what torch.optim calls it (Adagrad: sum; Adam: exp_avg, exp_avg_sq)
Where neither side has the optimizer, TensorFlow's word for the slot is kept.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

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

# What TensorFlow's defaults begin with, where that is not zero throughout.
_INITIAL: Dict[str, Tuple[float, ...]] = {
    "Adagrad": (0.1,),
    "AdagradDA": (0.0, 0.1),
    "Ftrl": (0.1, 0.0),
    "ProximalAdagrad": (0.1,),
    "RMSProp": (1.0, 0.0, 0.0),
}


class Slots(NamedTuple):
    """The slots of one variable, and what else is known of its optimizer.

    optimizer        TensorFlow's name of it
    sources          k -> tensor of the checkpoint that is the k-th slot
    hyperparameters  None for one that is no constant, or not the same for all parts
    lazy             Adam that moves the rows of the batch alone (LazyAdam)
    by_graph         whether training ops of the MetaGraph say so
    """

    optimizer: str
    sources: Dict[int, str]
    hyperparameters: Dict[str, Optional[float]] = {}
    lazy: bool = False
    by_graph: bool = False

    @property
    def variant(self) -> str:
        """The optimizer's name, "LazyAdam" too."""
        return "LazyAdam" if self.lazy else self.optimizer

    @property
    def constants(self) -> Dict[str, float]:
        """The hyperparameters that are known."""
        return {name: one for name, one in self.hyperparameters.items() if one is not None}


def slot_of(leaf: str, names: Mapping[str, str]) -> Optional[Tuple[str, int]]:
    """(optimizer, k) for the last part of a slot's name."""
    if leaf in names:
        return names[leaf], 0
    base, _, index = leaf.rpartition("_")
    if base in names and index.isdigit():
        return names[base], int(index)
    return None


def initial_value(optimizer: str, number: int) -> Optional[float]:
    """TensorFlow's default for the slot `number`; None for one that the optimizer lacks."""
    values = _INITIAL.get(optimizer, (0.0,) * len(_NAMES[optimizer]))
    return values[number] if number < len(values) else None


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
