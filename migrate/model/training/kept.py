"""A variable in the module's layout and in the checkpoint's."""

from __future__ import annotations

import numpy
import torch

from migrate.checkpoint.partitions import by_id, by_partition
from migrate.model.parameters import Parameter


def as_stored(parameter: Parameter, value: torch.Tensor) -> numpy.ndarray:
    """The module's value of a variable, in the checkpoint's layout."""
    array = value.detach().cpu().numpy()
    if parameter.axes is not None:
        array = array.transpose(numpy.argsort(parameter.axes))
    array = array.reshape((-1, *parameter.shape[1:]) if parameter.grows else parameter.shape)
    if parameter.dealt > 1:
        array = array[by_partition(parameter.shape[0], parameter.dealt)]
    return array


def as_kept(parameter: Parameter, stored: numpy.ndarray) -> torch.Tensor:
    """The checkpoint's value of a variable, in the module's layout."""
    if parameter.dealt > 1:
        stored = stored[by_id(parameter.shape[0], parameter.dealt)]
    array = stored if parameter.axes is None else stored.transpose(parameter.axes)
    return torch.from_numpy(array.copy())
