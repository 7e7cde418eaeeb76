"""What has to be seen on a GPU: the CPU's numbers, and what memory and pace become.

    python -m benchmarks.gpu --write FOLDER                      # with TensorFlow, anywhere
    python -m benchmarks.gpu --folder FOLDER --json gpu.json     # on the machine with the GPU

1. model         a converted model's losses and weights after further steps against the CPU's; its
                 pace with rows from files and with rows in memory, and the share of it in steps
2. distributed   the same under DistributedModelParallel and NCCL, in one process; its checkpoint
3. sequences     HSTU, with and without its kernels, and SASRec: states and gradients against the
                 CPU's, events per second, memory
4. static_tables tables in fp16 and int8: memory, look-ups
5. raw_ids       what `convert` writes for MPZCH and dynamicemb: look-ups, a step, pace

Each part has a process of its own and two minutes; one that lacks a package or its input says so,
and the others go on. Without a GPU it says so, and ends with 0. `--short --device cpu` rehearses.
"""

import importlib
import itertools
import json
import platform

from benchmarks import results
from benchmarks.harness.apart import apart
from benchmarks.harness.options import options

PARTS = ("model", "distributed", "sequences", "static_tables", "raw_ids")
SECONDS = 120  # of a part on a GPU
REHEARSAL = 600


def main():
    """The command line."""
    args = options(__doc__, write=str, folder=str, device="cuda", short=False, json=str)
    if args.write:
        importlib.import_module("benchmarks.gpu_parts.model").write(args.write)
        return
    import torch

    device = torch.device(args.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("torch finds no GPU here: there is nothing to measure")
        return
    about = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    figures = {"device": about, "torch": torch.__version__, "parts": {}}
    print(f"{about}, torch {torch.__version__}")
    for name in PARTS:
        print(f"\n{name}\n")
        rows, reason = _of(name, args)
        figures["parts"][name] = {"rows": rows, "not measured": reason}
        print("\n\n".join(_tables(rows)) if rows else f"not measured: {reason}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


def _of(name, args):
    """The rows of a part, or None and why there are none."""
    try:
        return apart(part, name, args, seconds=REHEARSAL if args.short else SECONDS), None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}".splitlines()[0]


def part(name, args):
    """The rows of a part, in this process."""
    import torch

    module = importlib.import_module(f"benchmarks.gpu_parts.{name}")
    return list(module.measure(torch.device(args.device), args.folder, args.short))


def _tables(rows):
    """Markdown, a table for each run of rows that have the same columns."""
    for columns, alike in itertools.groupby(rows, key=list):
        shown = [[_shown(value) for value in row.values()] for row in alike]
        yield results.markdown({"columns": columns, "rows": shown})


def _shown(value):
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
