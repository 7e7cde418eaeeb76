"""The device of this process: the CPU, or a GPU, of several processes one each."""

from __future__ import annotations

import os
from typing import Any

import torch

from migrate.launcher import from_environment
from semisync.common.errors import UsageError


def device_of(name: str) -> torch.device:
    """The device that `name` means for this process.

    Args:
        name: as torch has it. "cuda" is, of several processes on a machine, the GPU of this one's
            number there, which LOCAL_RANK says.

    Returns:
        A torch.device, which is torch's current one from now on where it is a GPU.

    Raises:
        UsageError: torch cannot compute there, or there is no GPU for each process.

    Examples:
        >>> from migrate.training import device_of
        >>> device_of("cpu")
        device(type='cpu')
    """
    try:
        device = torch.device(name)
        if device.type == "cuda":
            device = _gpu(device)
        # torch refuses a device only once it is used.
        torch.empty(1, device=device).item()
        if device.type == "cuda":
            torch.cuda.set_device(device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise UsageError(f"--device {name}: torch cannot compute there ({reason})") from error
    if device.type not in ("cpu", "cuda") and from_environment().size > 1:
        raise UsageError(f"--device {name}: several processes train on the CPU or on CUDA's GPUs")
    return device


def _gpu(device: torch.device) -> torch.device:
    own = from_environment()
    if own.size == 1:
        return torch.device("cuda", device.index or 0)
    if device.index is not None:
        raise UsageError(
            f"--device {device}: of {own.size} processes each takes its own GPU; say cuda"
        )
    number, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if 0 < there <= number:
        raise UsageError(
            f"--device cuda: this machine has {there} GPUs, none for its process {number}; "
            "start as many processes as there are GPUs"
        )
    return torch.device("cuda", number)


def of(module: torch.nn.Module) -> torch.device:
    """The device of a module's first weight; the CPU for one without weights."""
    first: Any = next(module.parameters(), None)
    return torch.device("cpu") if first is None else first.device
