"""The time of work on a device, until it is done there, and the most memory that it takes."""

import contextlib
import time
import types

import torch


def milliseconds(work, device, repeats):
    """Milliseconds of each call, after one that is not counted."""
    taken = []
    for turn in range(repeats + 1):
        synchronize(device)
        began = time.perf_counter()
        work()
        synchronize(device)
        if turn:
            taken.append(1000 * (time.perf_counter() - began))
    return taken


def synchronize(device):
    """Waits until the device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize()


@contextlib.contextmanager
def peak(device):
    """Yields the most GPU memory that the block allocates, as `gigabytes`; None on a CPU."""
    found = types.SimpleNamespace(gigabytes=None)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    yield found
    if device.type == "cuda":
        found.gigabytes = torch.cuda.max_memory_allocated() / 1e9
