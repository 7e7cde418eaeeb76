"""Converting a checkpoint from one bucket into another, against copying its bytes through here.

    python -m benchmarks.object_stores [--mb N] [--repeats N]

Of N MB in 8 partitions, in turns, each in a process of its own, as in convert.py:

    copy      every file of the checkpoint is read and written again, in pieces of 64 MiB
    convert   migrate.convert(..., verify=False): crc32c checked, files made, uploaded and removed
    verified  migrate.convert with its defaults, both sides read again and compared bit for bit

The store is moto, in a process of its own and without TLS, whose time is not counted; the buckets
lie in its memory. CPU seconds are of one process with all its threads.
"""

import contextlib
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.convert import converted, write_source
from benchmarks.harness.apart import apart
from benchmarks.harness.options import options
from benchmarks.harness.turns import ratios, turns
from benchmarks.harness.usage import Measured
from benchmarks.tables import head, row, spread

WAYS = ("copy", "convert", "verified")
SOURCE, OUT = "s3://source/model.ckpt", "s3://out/converted"
PIECE = 64 << 20
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}


@contextlib.contextmanager
def store():
    """A server that stands until the block ends, and that s3fs finds in this environment."""
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
        os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
        yield
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


def copied(fs):
    """The figures of reading and writing every file."""
    with Measured() as measured:
        for name in fs.ls("source"):
            with contextlib.ExitStack() as files:
                source = files.enter_context(
                    fs.open(name, "rb", block_size=PIECE, cache_type="none")
                )
                out = files.enter_context(fs.open(f"out/{name}", "wb", block_size=PIECE))
                shutil.copyfileobj(source, out, PIECE)
    return measured.figures


def measure(way):
    """The figures of one way, and how many bytes it wrote; what it wrote is removed."""
    import s3fs

    fs = s3fs.S3FileSystem()
    if way == "copy":
        figures = copied(fs)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            more = {"verify": way == "verified", "scratch": scratch}
            figures = converted(SOURCE, "sliced", OUT, **more)
    fs.invalidate_cache()
    found = fs.find("out", detail=True)
    fs.rm(list(found))
    return {**figures, "bytes": sum(one["size"] for one in found.values())}


def main():
    """The command line."""
    args = options(__doc__, mb=300, repeats=3)
    with store():
        apart(fill, args.mb)
        found = turns({way: lambda way=way: apart(measure, way) for way in WAYS}, args.repeats)
    print(head("way | seconds | cpu s per GB | cpu x copy | peak MiB above imports"))
    cpu = {way: [1e9 * run["cpu"] / run["bytes"] for run in runs] for way, runs in found.items()}
    for way, runs in found.items():
        cells = [way, spread(run["seconds"] for run in runs), f"{statistics.median(cpu[way]):.1f}"]
        cells.append(spread(ratios(cpu[way], cpu["copy"])))
        print(row(*cells, f"{max(run['memory'] for run in runs):.0f}"))


if __name__ == "__main__":
    main()
