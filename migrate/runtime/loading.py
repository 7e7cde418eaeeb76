"""Filling a model from the directory that `semisync convert --model` wrote."""

from __future__ import annotations

from typing import Any, Dict, Mapping

import torch

from migrate.manifest.manifest import Written, read_manifest
from migrate.manifest.transforms import INT8
from migrate.runtime.interface import Variable
from migrate.runtime.serving.linear import score_by_onednn
from migrate.targets.reading.torch_readers import read
from semisync.common.errors import BadInput


def load(module: torch.nn.Module, directory: str, variables: Mapping[str, Variable]) -> Any:
    """`module` with its weights, ready to score.

    Args:
        variables: the TensorFlow variable of each parameter and buffer.

    Raises:
        BadInput: the directory lacks one of them, or has it in another shape.
    """
    score_by_onednn(module)
    if not variables:  # a frozen graph has no manifest
        return module.eval()
    manifest = read_manifest(directory)
    written = {entry.source: entry for entry in manifest.tensors if _whole(entry)}
    counts: Dict[str, int] = {}
    for one in manifest.rows_by_id():
        if one.variable is not None:
            written[one.variable], counts[one.variable] = one.written, one.ids
    state = module.state_dict()
    wanted: Dict[str, torch.Tensor] = {}
    for variable in variables.values():
        entry = written.get(variable.name)
        if entry is None or entry.transform == INT8:
            form = "does not have" if entry is None else "has in eight bits"
            raise BadInput(f"{directory} {form} the variable {variable.name!r} of the model")
        if variable.rows is not None and entry.partition_strategy == "mod":
            raise BadInput(
                f"{directory}: {variable.name!r} is used by parts, whose rows were dealt out by id"
            )
        wanted[entry.fqn] = torch.empty(entry.shape, dtype=getattr(torch, entry.dtype))
    if wanted:
        read(directory, wanted)
    for name, variable in variables.items():
        value = wanted[written[variable.name].fqn]
        if variable.name in counts:
            value = value[: counts[variable.name]]
        if variable.rows is not None:
            value = value[slice(*variable.rows)]
        if variable.axes is not None:
            value = value.permute(variable.axes)
        if value.shape != state[name].shape:
            raise BadInput(
                f"{directory}: {variable.name!r} has shape {list(value.shape)}, and the model's "
                f"{name} {list(state[name].shape)}"
            )
        state[name].copy_(value)
    return module.eval()


def _whole(entry: Written) -> bool:
    return entry.role in ("dense", "scalar", "table")
