"""The tensors of a module of `migrate.load_model` or `migrate.build_training`, and its optimizer.

The module knows which variable each of its tensors is (`tensorflow_nodes`), the optimizer the names
of its slots and counters. All of it is in memory already.

Without the optimizer the slots are copied from the original.
"""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import torch

from migrate.model.parameters import Parameter
from migrate.model.training.stored import as_stored
from migrate.targets.reading.reader import dtype_name
from migrate.to_tensorflow.held import Held, Side, notes_on_state
from semisync.common.errors import UsageError

_PLACE = "the module"

Part = Tuple[int, torch.Tensor, Parameter]  # first row, values, and how they stand for the variable


def side_of_module(module: Any, optimizer: Optional[Any] = None) -> Side:
    """The tensors of a module, and of an optimizer of `build_training` or `build_optimizer`.

    Raises:
        UsageError: they are not those, or have only a part of a variable.
    """
    nodes = getattr(module, "tensorflow_nodes", None)
    if nodes is None:
        raise UsageError(
            "the module does not know its TensorFlow variables: give one of migrate.load_model or "
            "migrate.build_training, or the directory of a checkpoint"
        )
    state = module.state_dict()
    parts: Dict[str, List[Part]] = {}
    # Several nodes may be one parameter: its rows must come once.
    for parameter in dict.fromkeys(nodes.values()):
        _add(parts, parameter.variable, parameter, state[parameter.attribute])
    notes: List[str] = []
    if optimizer is not None:
        notes += _add_state(parts, optimizer)
    held = {name: _held(name, of) for name, of in parts.items()}
    if optimizer is not None:
        held.update(_counters(optimizer))
    return Side(_PLACE, held, {}, {}, {}, notes)


def _add(parts: Dict[str, List[Part]], name: str, parameter: Parameter, values: Any) -> None:
    # By name: these are Tensors too, and their classes need not be imported for this.
    sharded = type(values).__name__ in ("DTensor", "ShardedTensor")
    if not isinstance(values, torch.Tensor) or sharded:
        raise UsageError(
            f"{_PLACE} is sharded, and this process has a part of {name!r} alone; save it with "
            "torch.distributed.checkpoint, and give the directory"
        )
    first = 0 if parameter.rows is None else parameter.rows[0]
    parts.setdefault(name, []).append((first, values, parameter))


def _add_state(parts: Dict[str, List[Part]], optimizer: Any) -> List[str]:
    """Adds the slots; returns notes for the reader."""
    if not hasattr(optimizer, "targets"):
        raise UsageError(
            f"the optimizer is a {type(optimizer).__name__}, which does not know the slots of "
            "TensorFlow: give that of migrate.build_training or migrate.build_optimizer"
        )
    for target in optimizer.targets:
        state = optimizer.state[target.tensor]
        for slot, name in optimizer.slots[target.attribute].items():
            if name not in optimizer.begun:
                _add(parts, name, target.parameter, state[slot])
    return notes_on_state(optimizer.left_out, list(optimizer.begun))


def _held(name: str, parts: List[Part]) -> Held:
    """A variable, put together from its parts; raises UsageError if one of them is missing."""
    parts = sorted(parts, key=lambda part: part[0])
    arrays = [as_stored(parameter, values.detach().cpu()) for _, values, parameter in parts]
    whole = len(parts) == 1 and parts[0][2].rows is None
    ends = [first + len(array) for (first, *_), array in zip(parts, arrays)] if not whole else []
    if ends and [first for first, *_ in parts] != [0, *ends[:-1]]:
        raise UsageError(f"{_PLACE} has some rows of {name!r} alone, from {parts[0][0]} on")
    dtype = dtype_name(parts[0][1].dtype)
    shape = arrays[0].shape if whole else (ends[-1], *parts[0][2].shape[1:])
    return Held(dtype, tuple(shape), False, lambda: _rows(arrays))


def _rows(arrays: List[numpy.ndarray]) -> Iterator[numpy.ndarray]:
    for array in arrays:
        yield array.reshape(-1) if not array.shape else array


def _counters(optimizer: Any) -> Dict[str, Held]:
    held = {}
    for node, value in optimizer.counters.items():
        array, name = value.detach().cpu().numpy(), optimizer.names[node]
        if name not in optimizer.begun:
            held[name] = Held(
                dtype_name(value.dtype), tuple(array.shape), False, _one(array.reshape(-1))
            )
    return held


def _one(array: numpy.ndarray) -> Any:
    return lambda: iter([array])
