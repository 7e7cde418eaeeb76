"""What a static table takes of a GPU's memory, and how fast it is looked up there.

    python benchmarks/gpu.py [--rows N] [--dim N]

Prints, of a table with its Adagrad state and of the same one static in fp16 and int8: megabytes
that torch has allocated, and milliseconds of a look-up of 262,144 ids.
"""

import argparse
import statistics
import sys
import time

import torch
from torchrec import KeyedJaggedTensor

from migrate.torchrec import build, build_optimizer

IDS, REPEATS = 262_144, 50
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


def config(rows, dim, dtype, optimizer):
    """A model.json of one table."""
    static = {"float32": None, "float16": "fp16", "int8": "int8"}[dtype]
    table = {
        "name": "table", "rows": rows, "dim": dim, "dtype": dtype, "features": ["item"],
        "pooling": "sum", "weighted": False, "static": static, "placement": None, "ids": None,
        "optimizer": optimizer,
    }  # fmt: skip
    return {"tables": [table]}


def looked_up(module, ids, device):
    """The pooled rows of `ids`, one a bag."""
    lengths = torch.ones_like(ids)
    given = KeyedJaggedTensor(keys=["item"], values=ids, lengths=lengths).to(device)
    return module(given)["item"]


def measured(rows, dim, dtype, optimizer):
    """(megabytes, milliseconds) on the GPU."""
    gpu = torch.device("cuda")
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    told = config(rows, dim, dtype, optimizer)
    module = build(told, gpu)
    ids = torch.randint(0, rows, (IDS,), generator=torch.Generator().manual_seed(0))
    for one in build_optimizer(told, module).values() if optimizer else ():
        looked_up(module, ids, gpu).sum().backward()
        one.step()
        one.zero_grad()
    ids = ids.to(gpu)
    times = []
    with torch.no_grad():
        for _ in range(REPEATS):
            torch.cuda.synchronize()
            began = time.perf_counter()
            looked_up(module, ids, gpu)
            torch.cuda.synchronize()
            times.append(1000 * (time.perf_counter() - began))
    del ids
    return (torch.cuda.memory_allocated() - before) / 1e6, statistics.median(times)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=4_000_000, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=64, help="default: %(default)s")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch finds no GPU here: there is nothing to measure")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print("| table | MB | of the first | ms per look-up |")
    print("|---|---|---|---|")
    whole = None
    for name, (dtype, optimizer) in KINDS.items():
        size, took = measured(args.rows, args.dim, dtype, optimizer)
        whole = whole or size
        print(f"| {name} | {size:.0f} | {size / whole:.2f} | {took:.3f} |")


if __name__ == "__main__":
    main()
