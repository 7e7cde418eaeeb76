"""Trained variables and their slots in the checkpoint's layout and in the module's, and their slots
by torch's names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Dict, Sequence

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import by_id, by_partition
from migrate.graph.find import MetaGraph
from migrate.graph.updates import VariableUpdate
from migrate.model.parameters import Parameter
from semisync.common.errors import BadInput

if TYPE_CHECKING:
    import torch


def as_stored(parameter: Parameter, value: torch.Tensor) -> numpy.ndarray:
    """The module's value of a variable, in the checkpoint's layout."""
    array = value.detach().cpu().numpy()
    if parameter.axes is not None:
        array = array.transpose(numpy.argsort(parameter.axes))
    # A table by raw id may have more rows than the checkpoint by now.
    array = array.reshape((-1, *parameter.shape[1:]) if parameter.grows else parameter.shape)
    if parameter.dealt > 1:
        array = array[by_partition(parameter.shape[0], parameter.dealt)]
    return array


def as_kept(parameter: Parameter, stored: numpy.ndarray) -> torch.Tensor:
    """The checkpoint's value of a variable, in the module's layout."""
    import torch

    if parameter.dealt > 1:
        stored = stored[by_id(parameter.shape[0], parameter.dealt)]
    array = stored if parameter.axes is None else stored.transpose(parameter.axes)
    return torch.from_numpy(array.copy())


def slot_names(
    found: MetaGraph, checkpoint: Checkpoint, parameter: Parameter, parts: Sequence[VariableUpdate]
) -> Dict[str, str]:
    """torch's name of each slot -> its name in the checkpoint.

    Args:
        parts: the updates of the variable's partitions, or the one of the whole.

    Raises:
        BadInput: the checkpoint lacks it, or stores it differently from the variable.
    """
    names: Dict[str, str] = {}
    record = parts[0].optimizer
    slots = record.slots_for(range(len(parts[0].slots)))
    for k, slot in enumerate(slots):
        nodes = [part.slots[k] for part in parts]
        stored = {_stored(found, checkpoint, parameter, node) for node in nodes}
        if len(stored) != 1:
            raise BadInput(
                f"{checkpoint.prefix}: the partitions of {parameter.variable!r} are one tensor, "
                f"and their slots are {len(stored)}, {', '.join(sorted(stored))}; expected one"
            )
        names[slot.torch] = stored.pop()
    return names


def _stored(found: MetaGraph, checkpoint: Checkpoint, parameter: Parameter, node: str) -> str:
    saved = found.saved.get(node)
    if saved is None:
        raise BadInput(
            f"{checkpoint.prefix} has no slot {node!r} of {parameter.variable!r}, with which "
            f"{found.graph.path} trains it; give a checkpoint that was saved with the optimizer's "
            "slots"
        )
    shape, own = (tuple(checkpoint[name].shape) for name in (saved.name, parameter.variable))
    if shape != own:
        raise BadInput(
            f"{checkpoint.prefix}: the slot {saved.name!r} is {list(shape)}, and "
            f"{parameter.variable!r} is {list(own)}; expected one shape"
        )
    return saved.name


def read_slots(
    checkpoint: Checkpoint, parameter: Parameter, names: Dict[str, str]
) -> Dict[str, numpy.ndarray]:
    """The slots by torch's name, each in the module's layout of its variable."""
    return {torch: parameter.read(checkpoint, slot=name) for torch, name in names.items()}
