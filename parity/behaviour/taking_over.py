"""A training that goes on from what a conversion wrote."""

from __future__ import annotations

from typing import Dict, List, Tuple

import torch

from migrate.manifest.model import Written, read_manifest
from migrate.model.training.build import Training
from migrate.model.training.targets import Target
from migrate.runtime import loading
from migrate.torchrec.loading import read
from semisync.common.errors import BadInput

_AS_IT_IS = "copy"  # the transform of what the conversion did not change


def take_over(training: Training, directory: str) -> None:
    """Gives the module the weights of a conversion, and the optimizer its slots where they are in
    the checkpoint's own form; others stay the checkpoint's.

    Raises BadInput where the conversion lacks a variable of the module.
    """
    variables = {
        one.attribute: loading.Variable(one.variable, one.axes, one.rows)
        for one in training.module.tensorflow_nodes.values()
    }
    loading.load(training.module, directory, variables)
    written = {entry.source: entry for entry in read_manifest(directory).tensors}
    found: List[Tuple[Target, str, Written]] = []
    for target in training.optimizer.targets:
        for slot, name in training.optimizer.slots[target.attribute].items():
            entry = written.get(name)
            if entry is not None and entry.transform == _AS_IT_IS and entry.value is None:
                found.append((target, slot, entry))
    wanted: Dict[str, torch.Tensor] = {
        entry.fqn: torch.empty(entry.shape, dtype=getattr(torch, entry.dtype))
        for _, _, entry in found
    }
    if wanted:
        read(directory, wanted)
    for target, slot, entry in found:
        state = training.optimizer.state[target.tensor]
        state[slot].copy_(_as_kept(target, wanted[entry.fqn], directory, entry.source))


def _as_kept(target: Target, value: torch.Tensor, directory: str, name: str) -> torch.Tensor:
    """A slot, as the module keeps its variable."""
    parameter = target.parameter
    if parameter.rows is not None:
        value = value[slice(*parameter.rows)]
    if parameter.axes is not None:
        value = value.permute(parameter.axes)
    if value.shape != target.tensor.shape:
        raise BadInput(
            f"{directory}: the slot {name!r} has shape {list(value.shape)}, and its parameter "
            f"{list(target.tensor.shape)}"
        )
    return value
