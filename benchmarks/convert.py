"""Converting a checkpoint against copying its bytes.

    python -m benchmarks.convert [--mb N] [--repeats N] [--sources NAME ...] [--ways WAY ...]

The sources, of N MB each: a table and its Adagrad slot (plain: one piece; sliced: 8 partitions,
div; mod: 8 partitions, mod), and a hash table (hashed: random 64-bit ids in any order, converted
with --ids mpzch). For each, in turns:

    cp       `cp` of the data file, then fsync of the copy
    convert  migrate.convert(..., verify=False): crc32c checked, SHA-256 computed, files synced
    verified migrate.convert with its defaults, both sides read again and compared bit for bit

1. Each runs in its own process; the clock starts when the interpreter has finished its imports.
2. Memory is the largest resident set after that moment minus the one at that moment: the kernel's
   mark (VmHWM) is reset in between. A conversion is one process, whatever its threads.
3. The source is in the page cache. All data is written back to disk before the next way starts.

Prints a Markdown table: median [smallest, largest] seconds, CPU seconds on all cores, bytes written
per second (a hash table grows by its free rows), and their ratio to those of cp in the same round.
"""

import functools
import os
import shutil
import statistics
import subprocess
import tempfile

from benchmarks.harness.apart import apart
from benchmarks.harness.options import AnyOf, options
from benchmarks.harness.turns import ratios, turns
from benchmarks.harness.usage import Measured
from benchmarks.tables import head, row, spread

DIM, PARTS = 64, 8
DATA = ".data-00000-of-00001"
SOURCES = ("plain", "sliced", "mod", "hashed")
WAYS = ("convert", "verified")


def write_source(prefix, kind, megabytes):
    """A table and its slot, written by TensorFlow."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    if kind == "hashed":
        rows = megabytes * 1000 * 1000 // (8 + DIM * 4)
        random = np.random.default_rng(0)
        ids = np.arange(1, rows + 1, dtype=np.int64) * -7046029254386353131  # all different
        names, specs = ["table-keys", "table-values"], ["", ""]
        values = [ids, random.random((rows, DIM), np.float32)]
    else:
        rows = megabytes * 1000 * 1000 // (2 * DIM * 4)
        parts = 1 if kind == "plain" else PARTS
        sizes = [rows // parts + (part < rows % parts) for part in range(parts)]
        block = np.random.default_rng(0).random((sizes[0], DIM), np.float32)  # of each piece
        names, specs, values = [], [], []
        for name in ("table", "table/Adagrad"):
            start = 0
            for size in sizes:
                names.append(name)
                specs.append("" if parts == 1 else f"{rows} {DIM} {start},{size}:0,{DIM}")
                values.append(block[:size])
                start += size
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=values)


def copied(prefix, out):
    """The figures of `cp`."""
    with Measured() as measured:
        subprocess.run(["cp", prefix + DATA, out], check=True)
        descriptor = os.open(out, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return measured.figures


def converted(prefix, kind, out, **more):
    """The figures of a conversion, for which everything is imported before."""
    import torch.distributed.checkpoint  # noqa: F401

    import migrate
    from migrate import verification  # noqa: F401
    from migrate.targets import dcp  # noqa: F401

    strategy = None if kind in ("plain", "hashed") else {"sliced": "div"}.get(kind, kind)
    with Measured() as measured:
        with migrate.open_checkpoint(prefix) as checkpoint:
            tables = None if kind == "hashed" else "^table$"
            plan = migrate.plan(checkpoint, None, tables, strategy, ids="mpzch")
        migrate.convert(plan, out, **more)
    return measured.figures


def way(name, prefix, kind, out):
    """The figures of a way, in this process."""
    if name == "cp":
        return copied(prefix, out)
    return converted(prefix, kind, out, verify=name == "verified")


def measure(name, prefix, kind, folder):
    """The figures of a way, and how many bytes it wrote, which are removed."""
    out = os.path.join(folder, "out")
    figures = apart(way, name, prefix, kind, out)
    if os.path.isdir(out):
        figures["bytes"] = sum(os.path.getsize(os.path.join(*at)) for at in _files(out))
        shutil.rmtree(out)
    else:
        figures["bytes"] = os.path.getsize(out)
        os.remove(out)
    os.sync()
    return figures


def _files(folder):
    return [(below, name) for below, _, names in os.walk(folder) for name in names]


def main():
    """The command line."""
    args = options(__doc__, mb=1000, repeats=3, sources=AnyOf(SOURCES), ways=AnyOf(WAYS))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    print(head("source | way | seconds | cpu s | MB/s | x cp | peak MiB above imports"))
    for kind in args.sources:
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "source")
            apart(write_source, prefix, kind, args.mb)
            os.sync()
            sides = {
                name: functools.partial(measure, name, prefix, kind, folder)
                for name in ("cp", *args.ways)
            }
            found = turns(sides, args.repeats)
        speeds = {n: [run["bytes"] / run["seconds"] for run in runs] for n, runs in found.items()}
        for name, runs in found.items():
            cells = [kind, name, spread((run["seconds"] for run in runs), "{:.3g}")]
            cells.append(f"{statistics.median(run['cpu'] for run in runs):.2f}")
            cells.append(f"{statistics.median(speeds[name]) / 1e6:.0f}")
            cells.append(spread(ratios(speeds[name], speeds["cp"])))
            print(row(*cells, f"{max(run['memory'] for run in runs):.0f}"), flush=True)


if __name__ == "__main__":
    main()
