"""Converting a checkpoint from one bucket into another, against copying its bytes through here.

    python benchmarks/object_stores.py [--mb N] [--repeats N] [--workers N]

Of N MB in 8 partitions, in turn and repeated, each in a process of its own, as in convert.py:

    copy      every file of the checkpoint is read and written again, in pieces of 64 MiB
    convert   migrate.convert(..., verify=False): crc32c checked, files made, uploaded and removed
    verified  migrate.convert with its defaults, both sides read again and compared bit for bit

The store is moto, in a process of its own and without TLS, whose time is not counted; the buckets
lie in its memory. CPU seconds are of one process with all its threads.
"""

import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.convert import Measured, write_source
from benchmarks.tables import head, row, spread

WAYS = ("copy", "convert", "verified")
SOURCE, OUT = "s3://source/model.ckpt", "s3://out/converted"
PIECE = 64 << 20
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@contextlib.contextmanager
def store():
    """The environment in which s3fs finds a server that stands until the block ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.1)
        yield {**os.environ, **KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    finally:
        server.kill()
        server.wait()


def fill(megabytes):
    """Makes the buckets, and puts the checkpoint into one."""
    import s3fs

    fs = s3fs.S3FileSystem()
    for bucket in ("source", "out"):
        fs.mkdir(bucket)
    with tempfile.TemporaryDirectory() as folder:
        write_source(os.path.join(folder, "model.ckpt"), "sliced", megabytes)
        for name in os.listdir(folder):
            fs.put_file(os.path.join(folder, name), f"source/{name}")


def run_copy(workers):
    """Reads and writes every file."""
    import s3fs

    fs = s3fs.S3FileSystem()
    with Measured() as measured:
        for name in fs.ls("source"):
            with contextlib.ExitStack() as files:
                source = files.enter_context(
                    fs.open(name, "rb", block_size=PIECE, cache_type="none")
                )
                out = files.enter_context(fs.open(f"out/{name}", "wb", block_size=PIECE))
                shutil.copyfileobj(source, out, PIECE)
    return measured.figures


def run_convert(workers, verify=False):
    """Converts one bucket into the other."""
    import torch.distributed.checkpoint  # noqa: F401

    import migrate
    from migrate import verification  # noqa: F401
    from migrate.targets import dcp  # noqa: F401

    with tempfile.TemporaryDirectory() as scratch, Measured() as measured:
        with migrate.open_checkpoint(SOURCE) as checkpoint:
            plan = migrate.plan(checkpoint, None, "^table$", "div")
        migrate.convert(plan, OUT, verify=verify, workers=workers or None, scratch=scratch)
    return measured.figures


def run_verified(workers):
    """Converts and compares."""
    return run_convert(workers, verify=True)


def measure(way, args, environment):
    """The figures of one way, and how many bytes it wrote; what it wrote is removed."""
    command = [sys.executable, __file__, "--child", way, "--workers", str(args.workers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def child(way, workers):
    """Runs one way, prints its figures, and empties the bucket."""
    import s3fs

    figures = globals()["run_" + way](workers)
    fs = s3fs.S3FileSystem()
    fs.invalidate_cache()
    found = fs.find("out", detail=True)
    figures["bytes"] = sum(one["size"] for one in found.values())
    fs.rm(list(found))
    print(json.dumps(figures))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--mb", type=int, default=300, help="size of the source, in MB")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="0: as many as convert chooses")
    parser.add_argument("--fill", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.fill:
        fill(args.mb)
        return
    if args.child:
        child(args.child, args.workers)
        return
    with store() as environment:
        command = [sys.executable, __file__, "--fill", "--mb", str(args.mb)]
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
        rounds = [
            {way: measure(way, args, environment) for way in WAYS[:: (-1) ** number]}
            for number in range(args.repeats)
        ]
    print(head("way | seconds | cpu s per GB | cpu x copy | peak MiB above imports"))
    for way in WAYS:
        runs = [one[way] for one in rounds]
        cpu = [1e9 * run["cpu"] / run["bytes"] for run in runs]
        copies = [1e9 * one["copy"]["cpu"] / one["copy"]["bytes"] for one in rounds]
        seconds = spread(run["seconds"] for run in runs)
        ratios = spread(mine / theirs for mine, theirs in zip(cpu, copies))
        memory = max(run["memory"] for run in runs)
        print(row(way, seconds, f"{statistics.median(cpu):.1f}", ratios, f"{memory:.0f}"))


if __name__ == "__main__":
    main()
