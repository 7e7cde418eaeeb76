"""Random faults, and how long the training stands still at each.

A fault ends on its own: what was stopped continues, links are put in again, the disk is freed,
launchers and ZooKeeper's servers are started again, as a supervisor of the machines would; the
commands are the launchers' to start. Faults may overlap: one is over when it has ended and three
global steps came after that, not when all that it hit is back.
"""

import random
import signal
import time
from typing import NamedTuple

from benchmarks.chaos_parts.cluster import CHIEF, PATIENCE, PLACES, WORKERS, Stuck

STEPS = 3
OTHERS = [place for place in PLACES if place.startswith("worker") and place != CHIEF]
SERVERS = [place for place in PLACES if place.startswith("ps")]
ZOOKEEPER, DISK = "zookeeper", "disk"


class Kind(NamedTuple):
    """A kind of fault.

    Attributes:
        name: for people.
        weight: how often it comes, against the others.
        within: seconds for which the training may stand still.
        act, whom: the name of a method of `Faults`, and whom it may hit; [] is the leader.
    """

    name: str
    weight: int
    within: float
    act: str
    whom: list


# A worker's loss may cost 10 s, the chief's 60.
KINDS = [
    Kind("a worker's process killed", 5, 10, "kill_command", OTHERS),
    Kind("the chief's process killed", 3, 60, "kill_command", [CHIEF]),
    Kind("a parameter server's process killed", 2, 60, "kill_command", SERVERS),
    Kind("a worker's process stopped", 3, 10, "stop_command", OTHERS),
    Kind("the chief's process stopped", 2, 60, "stop_command", [CHIEF]),
    Kind("a parameter server's process stopped", 2, 60, "stop_command", SERVERS),
    Kind("a worker's launcher killed", 3, 10, "kill_launcher", OTHERS),
    Kind("the chief's launcher killed", 2, 60, "kill_launcher", [CHIEF]),
    Kind("the leading launcher killed", 3, 60, "kill_launcher", []),
    Kind("the leading launcher stopped", 4, 10, "stop_launcher", []),
    Kind("ZooKeeper's leader killed", 3, 10, "kill_server", [ZOOKEEPER]),
    Kind("ZooKeeper's leader stopped", 2, 10, "stop_server", [ZOOKEEPER]),
    Kind("ZooKeeper's leader cut off", 2, 10, "cut_server", [ZOOKEEPER]),
    Kind("a worker's link down", 3, 10, "cut", OTHERS),
    Kind("the chief's link down", 2, 60, "cut", [CHIEF]),
    Kind("a parameter server's link down", 2, 60, "cut", SERVERS),
    Kind("the disk full", 3, 60, "fill", [DISK]),
]


class Watch:
    """Follows the training: how many global steps there were, and the longest time without one."""

    def __init__(self, steps):
        self._steps, self._first = steps, steps.look()
        self._last, self._at = self._first, time.monotonic()
        self.longest = 0.0

    def count(self):
        """Global steps since the beginning."""
        last, now = self._steps.look(), time.monotonic()
        self.longest = max(self.longest, now - self._at)
        if last > self._last:
            self._last, self._at = last, now
        return last - self._first


class Faults:
    """Does faults to a `Cluster`, one after the other.

    Attributes:
        seen: a list of (name of the kind, seconds without a global step).
    """

    def __init__(self, cluster, seed):
        self._cluster, self._random = cluster, random.Random(seed)
        self._due = {}  # whom a fault has hit -> (when it ends, how)
        self.seen = []

    def tick(self):
        """Ends what is due; call it often."""
        for whom, (when, undo) in list(self._due.items()):
            if time.monotonic() > when:
                del self._due[whom]
                undo()
        for place, launcher in self._cluster.launchers.items():
            if launcher.poll() is not None and place not in self._due:
                raise Stuck(
                    "the launcher of {} ended with {} after {}\n{}".format(
                        place, launcher.poll(), self.seen[-3:], self._cluster.story()
                    )
                )

    def one(self):
        """Injects one fault and waits until the training continues; returns a sentence on it.

        Raises:
            Stuck: that takes too long.
        """
        kind, whom = self._choice()
        seconds = self._length(kind)
        what = "{} ({}) for {:.1f} s".format(kind.name, whom, seconds)
        watch = Watch(self._cluster.steps)
        undo = getattr(self, "_" + kind.act)(whom)
        self._due[whom] = time.monotonic() + seconds, undo

        def is_over():
            return watch.count() and whom not in self._due

        self._cluster.until(what, is_over, self.tick)
        enough = watch.count() + STEPS
        self._cluster.until(what, lambda: watch.count() >= enough, self.tick)
        self.seen.append((kind.name, watch.longest))
        until = time.monotonic() + self._random.uniform(0.0, 1.0)
        self._cluster.until("a rest", lambda: time.monotonic() > until, self.tick)
        return "{}: {:.1f} s without a step".format(what, watch.longest)

    def all_work(self):
        """Waits until every fault is over and batches of every worker are applied again."""
        self._cluster.until("the end of the faults", lambda: not self._due, self.tick)
        before = self._cluster.steps.batches.copy()

        def missing():
            self._cluster.steps.look()
            now = self._cluster.steps.batches
            return [task for task in range(WORKERS) if now[task] == before[task]]

        self._cluster.until("batches of all workers", lambda: not missing(), self.tick)

    def _choice(self):
        """A kind of fault, and whom it hits: somebody without one."""
        while True:
            self.tick()
            kind = self._random.choices(KINDS, [kind.weight for kind in KINDS])[0]
            whom = self._random.choice(kind.whom or [self._cluster.leader()])
            if whom is not None and whom not in self._due and self._is_there(whom):
                return kind, whom

    def _is_there(self, whom):
        if whom == ZOOKEEPER:
            return self._cluster.servers.has_leader()
        return whom == DISK or self._cluster.has_command(whom)

    def _length(self, kind):
        """Seconds that a fault lasts: short, seldom longer than the optimizer's patience."""
        if kind.act == "fill":
            return self._random.uniform(2.0, 5.0)
        if self._random.random() < 0.2:
            return PATIENCE * self._random.uniform(1.1, 1.6)
        return self._random.uniform(0.0, 2.0)

    # Each does something to somebody, and returns a function that ends it.

    def _kill_command(self, place):
        self._cluster.signal_command(place, signal.SIGKILL)
        return _nothing

    def _stop_command(self, place):
        self._cluster.signal_command(place, signal.SIGSTOP)
        return lambda: self._cluster.signal_command(place, signal.SIGCONT)

    def _kill_launcher(self, place):
        self._cluster.kill_launcher(place)
        return lambda: self._cluster.launch(place)

    def _stop_launcher(self, place):
        self._cluster.launchers[place].send_signal(signal.SIGSTOP)
        return lambda: self._cluster.launchers[place].send_signal(signal.SIGCONT)

    def _cut(self, place):
        self._cluster.plug(place, False)
        return lambda: self._cluster.plug(place, True)

    def _kill_server(self, _):
        number = self._cluster.servers.leader()
        self._cluster.servers.kill(number)
        return lambda: self._cluster.servers.start(number)

    def _stop_server(self, _):
        number = self._cluster.servers.leader()
        self._cluster.servers.signal(number, signal.SIGSTOP)
        return lambda: self._cluster.servers.signal(number, signal.SIGCONT)

    def _cut_server(self, _):
        number = self._cluster.servers.leader()
        self._cluster.plug_server(number, False)
        return lambda: self._cluster.plug_server(number, True)

    def _fill(self, _):
        self._cluster.fill_disk()
        return self._cluster.free_disk


def _nothing():
    pass
