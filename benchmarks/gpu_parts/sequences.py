"""Towers over sequences: the CPU's numbers, and events per second of a step forward and back."""

import copy
import functools
import statistics

import torch

from benchmarks.gpu_parts.timing import milliseconds
from migrate.sequences import Hstu, Packed, SasRec

ITEMS, DIM, LENGTH = 100_000, 256, 200
TOWERS = {"HSTU": Hstu, "SASRec": SasRec}


def measure(device, folder, short):
    """Yields a row per tower and number format: errors against the CPU's float32, and the pace."""
    sequences, repeats = (8, 2) if short else (1024, 20)
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(1, LENGTH + 1, (sequences,), generator=draw)
    items = torch.randint(0, ITEMS, (int(lengths.sum()),), generator=draw)
    packed = Packed(items, torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))
    for name, make in TOWERS.items():
        torch.manual_seed(0)
        tower = make(dim=DIM, heads=4, layers=2 if short else 8, length=LENGTH, dropout=0.0)
        table = torch.nn.Embedding(ITEMS, DIM)
        few = Packed(items[: int(lengths[:4].sum())], packed.offsets[:5])
        expected = _state_and_gradient(tower, table, few, torch.device("cpu"), None)
        for dtype in (None, torch.bfloat16):
            here, there = copy.deepcopy(tower).to(device), copy.deepcopy(table).to(device)
            found = _state_and_gradient(here, there, few, device, dtype)
            step = functools.partial(_state_and_gradient, here, there, packed, device, dtype)
            yield {
                "tower": name,
                "numbers": "bf16" if dtype else "float32",
                "error of states": _error(found[0], expected[0]),
                "error of gradients": _error(found[1], expected[1]),
                "events/s": 1000
                * len(items)
                / statistics.median(milliseconds(step, device, repeats)),
            }


def _error(found, expected):
    """The largest difference, of the largest value."""
    return float((found.cpu().float() - expected).abs().max() / expected.abs().max())


def _state_and_gradient(tower, table, packed, device, dtype):
    """The states of a batch, and the gradient of a sum of them in the table."""
    packed = Packed(packed.items.to(device), packed.offsets.to(device))
    table.zero_grad()
    tower.zero_grad()
    with torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None):
        states = tower(table(packed.items), packed)
    # No even sum, nor one of squares: of normalised states it is the same whatever they are.
    uneven = torch.linspace(-1, 1, states.shape[-1], device=device)
    (states.float() * uneven).sum().backward()
    return states.detach().clone(), table.weight.grad.detach().clone()
