"""Towers over sequences: the CPU's numbers, and events per second of a step forward and back."""

import copy
import functools
import statistics

import torch

from benchmarks.gpu_parts.timing import milliseconds, peak
from migrate.sequences import Hstu, Packed, SasRec
from migrate.sequences.pairs import InBlocks

ITEMS, DIM = 100_000, 256


class InBlocksAlone(Hstu):
    """HSTU without its kernels."""

    def among(self, tokens, vectors):
        return InBlocks(tokens, self.buckets)


TOWERS = {"HSTU": Hstu, "HSTU without kernels": InBlocksAlone, "SASRec": SasRec}


def measure(device, folder, short):
    """Yields a row per length, tower and number format: errors against the CPU's float32, the pace
    and the memory. HSTU has biases by time."""
    for length, sequences in ((40, 8),) if short else ((200, 1024), (2000, 64)):
        draw = torch.Generator().manual_seed(0)
        lengths = torch.randint(1, length + 1, (sequences,), generator=draw)
        packed = Packed.of(
            [torch.randint(0, ITEMS, (one,), generator=draw) for one in lengths.tolist()],
            [torch.randint(0, 10**7, (one,), generator=draw) for one in lengths.tolist()],
        )
        few = Packed.of(
            packed.items.split(lengths.tolist())[:2], packed.times.split(lengths.tolist())[:2]
        )
        for name, make in TOWERS.items():
            torch.manual_seed(0)
            more = {} if make is SasRec else {"buckets": 64}
            shape = {"dim": DIM, "heads": 4, "layers": 2 if short else 8, "length": length}
            model = torch.nn.ModuleList([make(**shape, **more), torch.nn.Embedding(ITEMS, DIM)])
            expected = _states_and_gradients(model, few, torch.device("cpu"), None)
            for dtype in (None, torch.bfloat16):
                yield {
                    "longest": str(length),
                    "tower": name,
                    "numbers": "bf16" if dtype else "float32",
                    **_measured(copy.deepcopy(model), packed, few, expected, device, dtype, short),
                }


def _measured(model, packed, few, expected, device, dtype, short):
    model.to(device)
    states, gradients = _states_and_gradients(model, few, device, dtype)
    here = packed.to(device)
    step = functools.partial(_states_and_gradients, model, here, device, dtype)
    with peak(device) as used:
        taken = statistics.median(milliseconds(step, device, 2 if short else 5))
    return {
        "error of states": _error(states, expected[0]),
        "error of gradients": max(map(_error, gradients, expected[1])),
        "events/s": 1000 * len(packed.items) / taken,
        "GB": used.gigabytes,
    }


def _error(found, expected):
    """The largest difference, of the largest value."""
    return float((found.cpu().float() - expected).abs().max() / expected.abs().max())


def _states_and_gradients(model, packed, device, dtype):
    """The states of a batch, and the gradients of a sum of them in all parameters."""
    tower, table = model
    packed = Packed(packed.items.to(device), packed.offsets.to(device), packed.times.to(device))
    model.zero_grad()
    with torch.autocast(device.type, dtype or torch.bfloat16, enabled=dtype is not None):
        states = tower(table(packed.items), packed)
    # No even sum, nor one of squares: of normalised states it is the same whatever they are.
    uneven = torch.linspace(-1, 1, states.shape[-1], device=device)
    (states.float() * uneven).sum().backward()
    return states.detach().clone(), [one.grad.clone() for one in model.parameters()]
