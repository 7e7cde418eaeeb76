"""How long `semisync launch --ship` takes for a file, checked, against one plain copy of it.

    python benchmarks/files.py [--megabytes 1000] [--repeats 3]

Both go over the loopback, so that the processors are what is measured. The plain copy is one GET
from aiohttp's own file server, written to a file: no signature, no checksum. Each repeat measures
both, one after the other.

A process of a repeat is this script with one of these words, and prints a JSON object per line:

    serve FOLDER             plain: aiohttp's own file server
    copy URL FILE            plain: one GET
    publish FOLDER           a `semisync.cluster.files.server.FileServer`
    download URL TOKEN DIGEST INTO   a `semisync.cluster.files.download.Download`
"""

import argparse
import asyncio
import json
import os
import pathlib
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import aiohttp
from aiohttp import web

from benchmarks.tables import head
from semisync.cluster.files.download import Download, Source
from semisync.cluster.files.manifest import copy as copy_files
from semisync.cluster.files.server import FileServer


def say(**what):
    print(json.dumps(what), flush=True)


def serve(folder):
    async def main():
        app = web.Application()
        app.router.add_static("/", folder)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        say(url="http://{}:{}".format(*runner.addresses[0][:2]))
        await asyncio.get_event_loop().run_in_executor(None, sys.stdin.read)

    asyncio.run(main())


def copy(url, place):
    async def main():
        endless = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession() as session, session.get(url, timeout=endless) as answer:
            with open(place, "wb") as file:
                async for part in answer.content.iter_any():
                    file.write(part)
                os.fsync(file.fileno())

    began = time.perf_counter()
    asyncio.run(main())
    say(seconds=time.perf_counter() - began)


def publish(folder):
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as shipped:
        manifest = copy_files([(folder, "")], shipped)
        server = FileServer(manifest, shipped, "127.0.0.1")
        say(url=server.url, token=server.token, digest=manifest.digest)
        sys.stdin.read()
        server.close()


def download(url, token, digest, into):
    os.mkdir(into)
    began = time.perf_counter()
    source = Source(url, token)
    Download(digest, lambda: source, into, 600.0, threading.Event()).run()
    say(seconds=time.perf_counter() - began)


class Program:
    """A process of a repeat; `said` is what it has said."""

    def __init__(self, *words):
        self.said = {}
        self._process = subprocess.Popen(
            [sys.executable, __file__, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hear(self, what):
        """Waits until it has said `what`; returns that."""
        while what not in self.said:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"a program ended without {what}")
            self.said.update(json.loads(line))
        return self.said[what]

    def end(self):
        """Lets it end; returns all that it said."""
        self._process.stdin.close()
        self.hear("cpu")
        self._process.wait()
        return self.said


def repeat(source, work):
    """Seconds, processor seconds of both sides and megabytes of the larger, of both kinds."""
    for server in ("serve", "publish"):
        serving = Program(server, source.parent)
        if server == "serve":
            asking = Program("copy", f"{serving.hear('url')}/{source.name}", work / "copy")
        else:
            told = [serving.hear(what) for what in ("url", "token", "digest")]
            asking = Program("download", *told, work / "copy")
        seconds = asking.hear("seconds")
        said = [asking.end(), serving.end()]
        yield seconds, sum(one["cpu"] for one in said), max(one["memory"] for one in said)
        (shutil.rmtree if (work / "copy").is_dir() else os.unlink)(work / "copy")


def measure(megabytes, repeats, folder):
    print(f"{megabytes} MB over the loopback; ", end="")
    print(f"{os.cpu_count()} processors, Python {platform.python_version()}\n")
    print(
        head(
            "plain copy, s | download, s | ratio | CPU plain, s | CPU download, s | "
            "largest process, MB"
        )
    )
    ratios = []
    with tempfile.TemporaryDirectory(dir=folder) as work:
        source = pathlib.Path(work) / "source" / "model.ckpt"
        source.parent.mkdir()
        with open(source, "wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(10**6))
        for _ in range(repeats):
            (plain, cpu, _), (checked, all_cpu, memory) = repeat(source, pathlib.Path(work))
            ratios.append(checked / plain)
            print(
                f"| {plain:.2f} | {checked:.2f} | {ratios[-1]:.2f} "
                f"| {cpu:.1f} | {all_cpu:.1f} | {memory:.0f} |",
                flush=True,
            )
    print(f"\nratio: median {statistics.median(ratios):.2f}, most {max(ratios):.2f}")


def main():
    roles = {"serve": serve, "copy": copy, "publish": publish, "download": download}
    if sys.argv[1:2] and sys.argv[1] in roles:
        roles[sys.argv[1]](*sys.argv[2:])
        used = resource.getrusage(resource.RUSAGE_SELF)
        say(cpu=used.ru_utime + used.ru_stime, memory=used.ru_maxrss / 1e3)
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", default="/dev/shm", help="a folder on a fast disk, or in memory")
    args = parser.parse_args()
    measure(args.megabytes, args.repeats, args.work)


if __name__ == "__main__":
    main()
