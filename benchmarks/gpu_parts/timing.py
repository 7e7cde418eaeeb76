"""How long work on a device takes, until it is done there."""

import time

import torch


def milliseconds(work, device, repeats):
    """Of each of the calls, after one that is not counted."""
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
