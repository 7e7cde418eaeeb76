"""The memory of a static table on a GPU, and the speed of its look-ups there.

For a table with its Adagrad state, and the same one static in fp16 and int8: megabytes that torch
has allocated, and milliseconds of a look-up of 262,144 ids.
"""

import statistics

import torch
from torchrec import KeyedJaggedTensor

from benchmarks.gpu_parts.timing import milliseconds
from migrate.torchrec import build, build_optimizer

IDS, REPEATS, DIM = 262_144, 50, 64
ADAGRAD = {
    "tensorflow": "Adagrad",
    "class": "torch.optim.Adagrad",
    "arguments": {"eps": 0.0, "lr": 0.05},
    "fused": True,
}
KINDS = {
    "float32 and Adagrad": ("float32", ADAGRAD),
    "fp16": ("float16", None),
    "int8": ("int8", None),
}


def _config(rows, dtype, optimizer):
    static = {"float32": None, "float16": "fp16", "int8": "int8"}[dtype]
    table = {
        "name": "table", "rows": rows, "dim": DIM, "dtype": dtype, "features": ["item"],
        "pooling": "sum", "weighted": False, "static": static, "placement": None, "ids": None,
        "optimizer": optimizer,
    }  # fmt: skip
    return {"tables": [table]}


def _looked_up(module, ids, device):
    """The pooled rows of `ids`, one a bag."""
    lengths = torch.ones_like(ids)
    given = KeyedJaggedTensor(keys=["item"], values=ids, lengths=lengths).to(device)
    return module(given)["item"]


def measure(device, folder, short):
    """Yields a row per kind of table."""
    first = None
    for name, (dtype, optimizer) in KINDS.items():
        size, took = _measured(100_000 if short else 4_000_000, dtype, optimizer, device)
        first = first or size
        share = size / first if first else None
        yield {"table": name, "MB": size, "of the first": share, "ms per look-up": took}


def _measured(rows, dtype, optimizer, device):
    """(megabytes, milliseconds); no megabytes of the CPU's memory."""
    allocated = torch.cuda.memory_allocated if device.type == "cuda" else lambda: 0
    if device.type == "cuda":
        torch.cuda.empty_cache()
    before = allocated()
    told = _config(rows, dtype, optimizer)
    module = build(told, device)
    ids = torch.randint(0, rows, (IDS,), generator=torch.Generator().manual_seed(0))
    for one in build_optimizer(told, module).values() if optimizer else ():
        _looked_up(module, ids, device).sum().backward()
        one.step()
        one.zero_grad()
    size = (allocated() - before) / 1e6
    there = ids.to(device)
    with torch.no_grad():
        taken = milliseconds(lambda: _looked_up(module, there, device), device, REPEATS)
    return size, statistics.median(taken)
