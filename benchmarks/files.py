"""How long `semisync launch --ship` takes for a file, checked, against one plain copy of it.

    python -m benchmarks.files [--megabytes 1000] [--repeats 3] [--work FOLDER]

Both go over the loopback, so that the processors are what is measured. The plain copy is one GET
from aiohttp's own file server, written to a file: no signature, no checksum. Each repeat measures
both, one after the other; every end of either is a process of its own. FOLDER is on a fast disk, or
in memory.
"""

import asyncio
import os
import pathlib
import resource
import shutil
import statistics
import tempfile
import threading
import time

import aiohttp
from aiohttp import web

from benchmarks.harness.apart import apart, beside
from benchmarks.harness.options import options
from benchmarks.tables import head, row
from semisync.cluster.files.download import Download, Source
from semisync.cluster.files.manifest import copy as copy_files
from semisync.cluster.files.server import FileServer


def serve(pipe, folder):
    """Plain: aiohttp's own file server, which sends its address."""

    async def main():
        app = web.Application()
        app.router.add_static("/", folder)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        pipe.send(["http://{}:{}".format(*runner.addresses[0][:2])])
        await asyncio.get_event_loop().run_in_executor(None, pipe.recv)

    asyncio.run(main())
    pipe.send(used())


def copy(url, place):
    """Plain: one GET; returns seconds and what it used."""

    async def main():
        endless = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession() as session, session.get(url, timeout=endless) as answer:
            with open(place, "wb") as file:
                async for part in answer.content.iter_any():
                    file.write(part)
                os.fsync(file.fileno())

    began = time.perf_counter()
    asyncio.run(main())
    return time.perf_counter() - began, used()


def publish(pipe, folder):
    """A FileServer, which sends its address, token and digest."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as shipped:
        manifest = copy_files([(folder, "")], shipped)
        server = FileServer(manifest, shipped, "127.0.0.1")
        pipe.send([server.url, server.token, manifest.digest])
        pipe.recv()
        server.close()
    pipe.send(used())


def download(url, token, digest, into):
    """A Download; returns seconds and what it used."""
    os.mkdir(into)
    began = time.perf_counter()
    source = Source(url, token)
    Download(digest, lambda: source, into, 600.0, threading.Event()).run()
    return time.perf_counter() - began, used()


def used():
    """Processor seconds and largest megabytes of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3


def repeat(source, work):
    """Seconds, processor seconds of both sides and megabytes of the larger, of both kinds."""
    out = work / "copy"
    for server, client in ((serve, copy), (publish, download)):
        with beside(server, str(source.parent)) as pipe:
            told = pipe.recv()
            told[0] += f"/{source.name}" if client is copy else ""
            seconds, ours = apart(client, *told, str(out))
            pipe.send("end")
            theirs = pipe.recv()
        yield seconds, ours[0] + theirs[0], max(ours[1], theirs[1])
        (shutil.rmtree if out.is_dir() else os.unlink)(out)


def measure(megabytes, repeats, folder):
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
            cells = [*map("{:.2f}".format, (plain, checked, ratios[-1])), f"{cpu:.1f}"]
            print(row(*cells, f"{all_cpu:.1f}", f"{memory:.0f}"), flush=True)
    print(f"\nratio: median {statistics.median(ratios):.2f}, most {max(ratios):.2f}")


def main():
    """The command line."""
    args = options(__doc__, megabytes=1000, repeats=3, work="/dev/shm")
    measure(args.megabytes, args.repeats, args.work)


if __name__ == "__main__":
    main()
