"""The devices of a model's parts: text and ragged rows on the CPU, numbers where the weights are.

model = migrate.load_model("model.ckpt-40000").cuda()
scores = model(batch)                       # on the GPU, wherever the batch is
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any, Callable, Iterator, List, Mapping

import torch
from torch import nn

_CPU = torch.device("cpu")

Method = Callable[[Any, Mapping[str, Any]], Any]


def on_the_cpu(method: Method) -> Method:
    """A method of a module that moves its inputs to the CPU, and makes new tensors there, too."""

    @functools.wraps(method)
    def run(self: nn.Module, given: Mapping[str, Any]) -> Any:
        return _run(method, self, given, _devices(given), _CPU)

    return run


def where_the_weights_are(method: Method) -> Method:
    """A method of a module that moves its inputs to the device of its weights, and makes new
    tensors there. If all weights are on the CPU: to the device of any input."""

    @functools.wraps(method)
    def run(self: nn.Module, given: Mapping[str, Any]) -> Any:
        weights = itertools.islice(itertools.chain(self.parameters(), self.buffers()), 1)
        devices = _devices(given)
        likely = itertools.chain((one.device for one in weights), devices)
        device = next((one for one in likely if one != _CPU), _CPU)
        return _run(method, self, given, devices, device)

    return run


def _devices(given: Mapping[str, Any]) -> List[torch.device]:
    """The devices of the tensors, in their order."""
    return list(dict.fromkeys(one.device for one in _tensors(given)))


def _run(
    method: Method,
    self: nn.Module,
    given: Mapping[str, Any],
    devices: List[torch.device],
    device: torch.device,
) -> Any:
    """Runs the method on `device`, moving the inputs there from their own devices."""
    there = all(one == device for one in devices)
    # torch.compile cannot trace this check, and keeps the devices of the inputs.
    if there and (torch.compiler.is_compiling() or torch.get_default_device() == device):
        return method(self, given)
    with device:
        return method(self, _moved(given, device))


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {name: _moved(one, device) for name, one in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([_moved(one, device) for one in value])
    if _is_record(value):
        return type(value)(*(_moved(one, device) for one in _fields(value)))
    return value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in a value, or in a mapping, tuple, list or dataclass of values."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)
    elif _is_record(value):
        for one in _fields(value):
            yield from _tensors(one)


def _is_record(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _fields(value: Any) -> Iterator[Any]:
    return (getattr(value, field.name) for field in dataclasses.fields(value))
