"""How long a file takes to many machines, against one plain copy of it to one machine.

    python benchmarks/files.py [--megabytes 1000] [--followers 8] [--link 100] [--repeats 3]
    python benchmarks/files.py --simulate [--gigabytes 10] [--followers 1000] [--link 1000]

Every machine is a network namespace with a link of its own, full duplex and limited both ways to
--link megabits per second; needs root. With --link 0 everything shares the loopback without a
limit, so that the processors are what is measured. The plain copy is one GET from aiohttp's own
file server, written to a file: no signature, no checksum. Each repeat measures both, one after the
other.

"Copies from the root" are bytes that left its link over the bytes of the file: headers,
acknowledgements and what followers ask of each other's state are in it.

--simulate computes the same with many more followers, by the rules that the followers themselves
run: see files_parts/simulation.py.
"""

import argparse
import json
import os
import pathlib
import platform
import secrets
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from benchmarks.files_parts.network import machines
from benchmarks.files_parts.simulation import report

MACHINE = pathlib.Path(__file__).with_name("files_parts") / "machine.py"
KEY = {"SEMISYNC_KEY": secrets.token_hex(32)}


class Program:
    """machine.py on a `Machine`; started: all of them."""

    started = []

    def __init__(self, machine, *words):
        self.said = {}
        self.started.append(self)
        command = [*machine.prefix, sys.executable, str(MACHINE), *map(str, words)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **KEY, "PYTHONPATH": str(MACHINE.parents[2])},
        )

    def hear(self, what):
        """Waits until it has said `what`; returns that."""
        while what not in self.said:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"a program ended without {what}")
            self.said.update(json.loads(line))
        return self.said[what]

    def begin(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def kill(self):
        """Ends it if it still runs."""
        self._process.kill()
        self._process.wait()

    def end(self):
        """Has it end by itself; returns all that it said."""
        self._process.stdin.close()
        self.hear("cpu")
        self._process.wait()
        return self.said


def plain(server, client, source, work):
    """Seconds of one plain copy, and processor seconds of both sides."""
    serving = Program(server, "serve", source.parent, server.address)
    copying = Program(client, "copy", f"{serving.hear('url')}/{source.name}", work / "plain")
    seconds = timed([copying])
    return seconds, copying.end()["cpu"] + serving.end()["cpu"]


def swarm(root, followers, source, work):
    """Seconds until the last follower is done, copies from the root, processor seconds."""
    origin = Program(root, "publish", source.parent, root.address)
    url, digest = origin.hear("url"), origin.hear("digest")
    programs = [
        Program(machine, "download", url, digest, work / str(number), machine.address)
        for number, machine in enumerate(followers)
    ]
    before = root.sent()
    seconds = timed(programs)
    left = root.sent() - before
    said = [program.end() for program in [*programs, origin]]
    size = source.stat().st_size
    for number in range(len(followers)):
        if (work / str(number) / source.name).stat().st_size != size:
            raise SystemExit(f"follower {number} has another file")
    return {
        "seconds": seconds,
        "copies": (left or said[-1]["sent"]) / size,
        "cpu": sum(one["cpu"] for one in said),
        "most sent by a follower": max(one["sent"] for one in said[:-1]) / size,
        "memory": max(one["memory"] for one in said),
    }


def timed(programs):
    """Seconds from the start of all to the end of the last."""
    for program in programs:
        program.hear("ready")
    began = time.perf_counter()
    for program in programs:
        program.begin()
    for program in programs:
        program.hear("done")
    return time.perf_counter() - began


def measure(args):
    print(f"{args.megabytes} MB to {args.followers} followers, ", end="")
    print(f"links of {args.link} Mbit/s" if args.link else "loopback, no limit", end="; ")
    print(f"{os.cpu_count()} processors, Python {platform.python_version()}\n")
    print(
        "| one plain copy, s | all followers, s | ratio | copies from the root | most from a ",
        end="",
    )
    print("follower | CPU plain, s | CPU all, s | largest process, MB |\n|" + "---|" * 8)
    ratios = []
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        work = pathlib.Path(folder)
        source = work / "source" / "model.ckpt"
        source.parent.mkdir()
        with open(source, "wb") as file:
            for _ in range(args.megabytes):
                file.write(os.urandom(10**6))
        for _ in range(args.repeats):
            with machines(args.followers + 1, args.link) as all_machines:
                root, *followers = all_machines
                try:
                    copied, cpu = plain(root, followers[0], source, work)
                    (work / "plain").unlink()
                    found = swarm(root, followers, source, work)
                finally:
                    for program in Program.started:
                        program.kill()
            for number in range(args.followers):
                shutil.rmtree(work / str(number))
            ratios.append(found["seconds"] / copied)
            print(
                f"| {copied:.1f} | {found['seconds']:.1f} | {ratios[-1]:.2f} "
                f"| {found['copies']:.2f} | {found['most sent by a follower']:.2f} "
                f"| {cpu:.1f} | {found['cpu']:.1f} | {found['memory']:.0f} |",
                flush=True,
            )
    print(f"\nratio: median {statistics.median(ratios):.2f}, most {max(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--gigabytes", type=float, default=10.0, help="of --simulate")
    parser.add_argument("--followers", type=int, help="default: 8; simulated: 1000")
    parser.add_argument("--link", type=int, help="Mbit/s; default: 100; simulated: 1000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--work", default="/dev/shm", help="a folder on a fast disk, or in memory")
    parser.add_argument("--simulate", action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or the namespaces would stay
    simulated = args.simulate
    args.followers = args.followers or (1000 if simulated else 8)
    args.link = (1000 if simulated else 100) if args.link is None else args.link
    if simulated:
        report(args.gigabytes, args.followers, args.link)
    else:
        measure(args)


if __name__ == "__main__":
    main()
