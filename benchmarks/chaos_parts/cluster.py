"""Two parameter servers, six workers and three ZooKeeper servers, each on a machine of its own.

Every process of the job has a launcher (`launcher`), and the launcher a command (`job`).
"""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import time

import psutil

from benchmarks.chaos_parts import job
from benchmarks.chaos_parts.network import machines
from semisync.cluster.local import environment
from semisync.cluster.zookeeper.leader import boot_clock
from tests.support.zookeeper import ZooKeeper

ROOT = pathlib.Path(__file__).resolve().parents[2]
PS, WORKERS, SERVERS = 2, 6, 3
PLACES = ["ps-{}".format(n) for n in range(PS)] + ["worker-{}".format(n) for n in range(WORKERS)]
CHIEF = "worker-0"
CHROOT, JOB = "/chaos", "chaos"
SESSION = 4  # seconds
LINK = 1000  # megabits per second
PATIENCE = 6.0  # seconds, of the optimizer
DISK = 96  # MB, for checkpoints
HANG = 180.0  # seconds
LEADS = 1.0  # seconds since it said so


class Stuck(Exception):
    """Something did not happen in time; the message has the last lines of all logs."""


class Cluster:
    """Everything that runs, and the means to harm it.

    Args:
        folder: a pathlib directory that this one may write to.
        python: an interpreter with TensorFlow, for the launchers and their commands.
        seed: of the data.
        pause: seconds between two batches of a worker.

    Attributes:
        steps: the `Steps` of the training.
    """

    def __init__(self, folder, python, seed, pause):
        self.out, self.audit = folder, str(folder / job.AUDIT)
        self.steps = Steps(self.audit)
        self._python, self.launchers = python, {}
        self.disk = folder / "checkpoints"
        self._spec = {
            "out": str(folder),
            "checkpoints": str(self.disk),
            "pause": pause,
            "patience": PATIENCE,
            "seed": seed,
        }
        with contextlib.ExitStack() as ends:
            count = len(PLACES) + SERVERS
            self._machines = ends.enter_context(machines(count, LINK))
            self._mount(ends)
            self.servers = self._servers()
            ends.callback(self.servers.stop)
            ends.callback(self._kill_all)
            self._ends = ends.pop_all()

    def _mount(self, ends):
        """Gives the checkpoints a disk of their own, which can be filled."""
        self.disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", "size={}m".format(DISK), "chaos", str(self.disk)]
        subprocess.run(mount, check=True)
        ends.callback(subprocess.run, ["umount", "-l", str(self.disk)])

    def _servers(self):
        folder = self.out / "zookeeper"
        folder.mkdir()
        return ZooKeeper(folder, SERVERS, machines=self._machines[len(PLACES) :])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._ends.close()

    def launch(self, place):
        """Starts a launcher."""
        role, _, index = place.partition("-")
        command = [*self._machine(place).prefix, self._python, "-m"]
        command += ["benchmarks.chaos_parts.launcher", str(self.reign(place))]
        command += ["--zookeeper", self.servers.hosts + CHROOT, "--job", JOB, "--role", role]
        command += ["--index", index, "--ps", str(PS), "--workers", str(WORKERS)]
        command += ["--session-timeout", str(SESSION), "--restarts", "100000"]
        command += ["--deadline", "120", "--", self._python, "-m", job.__name__]
        with open(self.log(place), "ab") as log:
            self.launchers[place] = subprocess.Popen(
                [*command, json.dumps(self._spec)],
                cwd=str(self.out),
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def launch_all(self):
        for place in PLACES:
            self.launch(place)

    def _machine(self, place):
        return self._machines[PLACES.index(place)]

    def plug(self, place, is_in):
        """Pulls a place's link out, or puts it in."""
        self._machine(place).plug(is_in)

    def plug_server(self, number, is_in):
        """Pulls a ZooKeeper server's link out, or puts it in."""
        self._machines[len(PLACES) + number].plug(is_in)

    def reign(self, place):
        """The file in which a place's launchers write down when they lead."""
        return self.out / "reign-{}".format(place)

    def log(self, place):
        return str(self.out / "{}.log".format(place))

    def leader(self):
        """The place whose launcher leads, or None."""
        last = {}
        for place in PLACES:
            lines = _tail(self.reign(place))
            if len(lines) > 2:
                # The last whole line: what is behind its newline may still be written.
                last[place] = float(lines[-2].split()[1])
        place = max(last, key=last.get, default=None)
        return place if place and boot_clock() - last[place] < LEADS else None

    def kill_launcher(self, place):
        """kill -9; its command ends with it."""
        self.launchers[place].kill()
        self.launchers[place].wait()

    def has_command(self, place):
        """Whether the command of a place runs."""
        return bool(self._commands(place))

    def signal_command(self, place, number):
        """Sends a signal to the command's process, if there is one."""
        for command in self._commands(place):
            with contextlib.suppress(psutil.NoSuchProcess):
                command.send_signal(number)

    def _commands(self, place):
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.launchers[place].pid).children()
            return [child for child in children if job.__name__ in child.cmdline()]
        return []

    def fill_disk(self):
        """Leaves no room for checkpoints."""
        with contextlib.suppress(OSError), open(str(self.disk / "filling"), "wb", 0) as file:
            while True:
                file.write(bytes(1 << 16))

    def free_disk(self):
        """Removes what fills the disk, and what earlier chiefs wrote for TensorBoard."""
        for path in [self.disk / "filling", *sorted(self.disk.glob("events.*"))[:-1]]:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()

    def until(self, what, condition, tick=lambda: None, within=HANG):
        """Waits for a condition; raises Stuck if it does not come true in time."""
        late = time.monotonic() + within
        while not condition():
            tick()
            if time.monotonic() > late:
                raise Stuck("{}: not within {:.0f} s\n{}".format(what, within, self.story()))
            time.sleep(0.02)

    def end(self):
        """Has the workers end, and waits until all launchers have, without an error."""
        (self.out / job.STOP).touch()
        launchers = self.launchers.values()
        self.until("the end", lambda: all(one.poll() is not None for one in launchers))
        codes = {place: launcher.poll() for place, launcher in self.launchers.items()}
        if set(codes.values()) != {0}:
            raise Stuck("launchers ended with {}\n{}".format(codes, self.story()))

    def _kill_all(self):
        for process in self.launchers.values():
            process.kill()
            process.wait()

    def story(self, lines=25):
        """The last lines of every launcher and its command."""
        parts = []
        for place in PLACES:
            with open(self.log(place), encoding="utf-8", errors="replace") as log:
                last = [line.rstrip()[:300] for line in collections.deque(log, lines)]
            parts.append("--- {}\n{}".format(place, "\n".join(last)))
        return "\n".join(parts)


def _tail(path):
    """The last lines of a file, the first of them perhaps in part."""
    if not path.exists():
        return []
    with open(str(path), "rb") as file:
        file.seek(max(0, path.stat().st_size - 100))
        return file.read().split(b"\n")


def _environment():
    return dict(environment(), PYTHONPATH=str(ROOT))


class Steps:
    """Follows the global steps in an audit log while it grows."""

    def __init__(self, path):
        self._path, self._offset, self._rest = path, 0, ""
        self.count = 0
        self.batches = collections.Counter()  # {worker's task: batches applied}

    def look(self):
        """Reads what is new; returns how many global steps there were so far."""
        if not os.path.exists(self._path):
            return 0
        with open(self._path) as log:
            log.seek(self._offset)
            text = self._rest + log.read()
            self._offset = log.tell()
        *whole, self._rest = text.split("\n")
        for line in whole:
            with contextlib.suppress(ValueError):  # torn by a kill
                event = json.loads(line) if '"event": "step"' in line else {}
                self.count += bool(event)
                self.batches.update(_task(batch["member"]) for batch in event.get("batches", []))
        return self.count


def _task(member):
    return int(member.partition("task:")[2].split()[0].partition("/")[0])
