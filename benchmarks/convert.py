"""Converting a checkpoint against copying its bytes, and against the naive way.

    python benchmarks/convert.py [--mb N] [--repeats N] [--workers N] [--cold] [--dir DIR] ...

The sources, of N MB each: a table and its Adagrad slot (plain: one piece; sliced: 8 partitions,
div; mod: 8 partitions, mod), and a hash table (hashed: random 64-bit ids in any order, converted
with --ids mpzch). For each, in turn and repeated:

    cp       `cp` of the data file, then fsync of the copy
    convert  migrate.convert(..., verify=False): crc32c checked, SHA-256 computed, files synced
    verified migrate.convert with its defaults, both sides read again and compared bit for bit
    naive    TensorFlow's reader into memory, rows reordered, torch.save, fsync

1. Each runs in its own process; the clock starts when the interpreter has finished its imports.
   Every other round runs the ways in reverse order.
2. Memory is the largest resident set after that moment minus the one at that moment: the kernel's
   mark (VmHWM) is reset in between. A conversion is one process, whatever its threads.
3. The source is in the page cache; with --cold it is dropped from the cache before each run.
4. All data is written back to disk before the next way starts.

Prints a Markdown table: median [smallest, largest] seconds, CPU seconds on all cores, bytes written
per second (a hash table grows by its free rows), and their ratio to those of cp in the same round.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.tables import head, row, spread

DIM, PARTS = 64, 8
DATA = ".data-00000-of-00001"
SOURCES = ("plain", "sliced", "mod", "hashed")
WAYS = ("cp", "convert", "verified", "naive")


def write_source(prefix, kind, megabytes):
    """A table and its slot, written by TensorFlow."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    if kind == "hashed":
        rows = megabytes * 1000 * 1000 // (8 + DIM * 4)
        random = np.random.default_rng(0)
        ids = np.arange(1, rows + 1, dtype=np.int64) * -7046029254386353131  # all different
        tensors = [ids, random.random((rows, DIM), np.float32)]
        names = ["table-keys", "table-values"]
        tf.raw_ops.SaveV2(
            prefix=prefix, tensor_names=names, shape_and_slices=["", ""], tensors=tensors
        )
        return
    rows = megabytes * 1000 * 1000 // (2 * DIM * 4)
    parts = 1 if kind == "plain" else PARTS
    sizes = [rows // parts + (part < rows % parts) for part in range(parts)]
    block = np.random.default_rng(0).random((sizes[0], DIM), np.float32)  # the same in each piece
    names, specs, values = [], [], []
    for name in ("table", "table/Adagrad"):
        start = 0
        for size in sizes:
            names.append(name)
            spec = f"{rows} {DIM} {start},{size}:0,{DIM}"
            specs.append("" if parts == 1 else spec)
            values.append(block[:size])
            start += size
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs, tensors=values)


def resident(mark):
    """VmRSS, the resident set of this process, or VmHWM, the largest so far, in MiB."""
    with open("/proc/self/status") as status:
        return int(status.read().split(mark + ":")[1].split()[0]) / 1024


class Measured:
    """Seconds, CPU seconds with ended children, and the most that memory grew (RSS), in MiB."""

    def __enter__(self):
        with open("/proc/self/clear_refs", "w") as marks:
            marks.write("5")  # resets VmHWM to the current resident set
        self._memory, self._cpu, self._start = resident("VmRSS"), processor(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.figures = {
            "seconds": time.perf_counter() - self._start,
            "cpu": processor() - self._cpu,
            "memory": resident("VmHWM") - self._memory,
        }


def processor():
    """CPU seconds of this process and of its children that have ended."""
    return sum(os.times()[:4])


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def run_cp(prefix, kind, out, workers):
    with Measured() as measured:
        subprocess.run(["cp", prefix + DATA, out], check=True)
        sync(out)
    return measured.figures


def run_convert(prefix, kind, out, workers, verify=False):
    import torch.distributed.checkpoint  # noqa: F401

    import migrate
    from migrate import verification  # noqa: F401
    from migrate.targets import dcp  # noqa: F401

    strategy = None if kind in ("plain", "hashed") else {"sliced": "div"}.get(kind, kind)
    with Measured() as measured:
        with migrate.open_checkpoint(prefix) as checkpoint:
            tables = None if kind == "hashed" else "^table$"
            plan = migrate.plan(checkpoint, None, tables, strategy, ids="mpzch")
        migrate.convert(plan, out, verify=verify, workers=workers or None)
    return measured.figures


def run_verified(prefix, kind, out, workers):
    return run_convert(prefix, kind, out, workers, verify=True)


def run_naive(prefix, kind, out, workers):
    import numpy as np
    import tensorflow as tf
    import torch

    with Measured() as measured:
        reader = tf.train.load_checkpoint(prefix)
        state = {}
        if kind == "hashed":
            ids, rows = (reader.get_tensor(name) for name in ("table-keys", "table-values"))
            order = np.argsort(ids)
            state = {"ids": torch.from_numpy(ids[order]), "rows": torch.from_numpy(rows[order])}
        for name in ("table", "table/Adagrad") if kind != "hashed" else ():
            values = reader.get_tensor(name)
            if kind == "mod":
                sizes = [len(part) for part in np.array_split(np.empty(len(values)), PARTS)]
                ordered = np.empty_like(values)
                for part, begin in enumerate(np.cumsum([0, *sizes[:-1]])):
                    ordered[part::PARTS] = values[begin : begin + sizes[part]]
                values = ordered
            state[name] = torch.from_numpy(values)
        torch.save(state, out)
        sync(out)
    return measured.figures


def child(way, prefix, kind, out, workers):
    """Runs one way and prints its figures."""
    print(json.dumps(globals()["run_" + way](prefix, kind, out, int(workers))))


def drop_from_cache(path):
    """Drops `path` from the page cache, so that its next reader waits for the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def measure(way, prefix, kind, folder, args):
    out = os.path.join(folder, "out")
    command = [sys.executable, __file__, "--child", way, prefix, kind, out, str(args.workers)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if args.cold:
        drop_from_cache(prefix + DATA)
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    figures = {**json.loads(done.stdout), "bytes": written(out)}
    if os.path.isdir(out):
        shutil.rmtree(out)
    else:
        os.remove(out)
    os.sync()
    return figures


def written(path):
    """The bytes of a file, or of all files below a directory."""
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(written(entry.path) for entry in os.scandir(path))


def speed(figures):
    """Bytes written per second."""
    return figures["bytes"] / figures["seconds"]


def main():
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--mb", type=int, default=1000, help="size of a source, in MB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="0: as many as convert chooses")
    parser.add_argument("--sources", nargs="*", default=SOURCES, choices=SOURCES)
    parser.add_argument(
        "--ways", nargs="*", default=WAYS, choices=WAYS, help="cp is always among them"
    )
    parser.add_argument("--cold", action="store_true", help="read the source from the disk")
    parser.add_argument("--dir", help="where to work: the disk that is measured")
    parser.add_argument("--json", help="where to write the raw figures")
    args = parser.parse_args()
    ways = [way for way in WAYS if way in (*args.ways, "cp")]
    print(f"{platform.platform()}, {os.cpu_count()} CPUs; {args.mb} MB per source, ", end="")
    print(f"{args.workers or 'default'} workers, {args.repeats} repeats, ", end="")
    print("source from the disk\n" if args.cold else "source in the page cache\n")
    print(head("source | way | seconds | cpu s | MB/s | x cp | peak MiB above imports"))
    results = {}
    for kind in args.sources:
        with tempfile.TemporaryDirectory(dir=args.dir) as folder:
            prefix = os.path.join(folder, "source")
            code = (
                f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r}); "
                f"import convert; convert.write_source({prefix!r}, {kind!r}, {args.mb})"
            )
            subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
            os.sync()
            rounds = [
                {way: measure(way, prefix, kind, folder, args) for way in ways[:: (-1) ** number]}
                for number in range(args.repeats)
            ]
        results[kind] = rounds
        for way in ways:
            runs = [ways_run[way] for ways_run in rounds]
            seconds = [run["seconds"] for run in runs]
            speeds = [speed(run) for run in runs]
            ratios = [mine / speed(ways_run["cp"]) for mine, ways_run in zip(speeds, rounds)]
            memory = max(run["memory"] for run in runs)
            cpu = statistics.median(run["cpu"] for run in runs)
            cells = [kind, way, spread(seconds), f"{cpu:.2f}"]
            cells += [f"{statistics.median(speeds) / 1e6:.0f}", spread(ratios)]
            cells.append(f"{memory:.0f}")
            print(row(*cells), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
