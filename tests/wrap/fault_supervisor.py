"""Random faults, and a supervisor that starts again what ended, as a cluster manager does."""

import random
import signal
import time

# How a worker may end by itself, besides by coming to its end: its chief, or a parameter server,
# was away for too long.
GIVES_UP = ("no sign of life from the chief", "no ticket for", "did not answer for")

WORKERS, CHIEF, PS = [("worker", 1), ("worker", 2)], [("worker", 0)], [("ps", 0), ("ps", 1)]
KINDS = [(kind, keys) for kind in ("kill", "stop") for keys in (WORKERS, CHIEF, PS)]


class Supervisor:
    """Injects faults into a job, and keeps it running.

    Args:
        job: a `fault_cluster.Job`, started.
        progress: a `fault_cluster.Progress` of its audit log.
        patience: of its optimizer, in seconds.
        seed: decides the faults and when they happen, as far as the machine lets it.
    """

    def __init__(self, job, progress, patience, seed):
        self._job, self._progress, self._patience = job, progress, patience
        self._random = random.Random(seed)
        self._kinds = []  # of the faults to come; each comes before one comes again
        self._due = {}  # process -> when it is to be started again or let go on, and which
        self.faults = []  # what was done, in words
        self.gave_up = []  # what workers said that ended by themselves

    def tick(self):
        """Starts and lets go on what is due; call it often."""
        for key, (when, what) in list(self._due.items()):
            if time.monotonic() > when:
                del self._due[key]
                if what == "start":
                    self._job.start(*key)
                else:
                    self._job.signal(key, signal.SIGCONT)
        for key, process in list(self._job.processes.items()):
            if process.poll() is not None and key not in self._due:
                error = self._job.error(key)
                assert any(sentence in error for sentence in GIVES_UP), self._report(key)
                self.gave_up.append(error)
                self._job.start(*key)

    def _report(self, key):
        return "{} {} ended by itself after fault {}, {}\n{}\n{}".format(
            key[0],
            key[1],
            len(self.faults),
            self.faults[-3:],
            self._job.words(key),
            self._job.story(),
        )

    def fault(self):
        """Does something bad to a process, and waits until the job makes progress again."""
        kind, key = self._next()
        away = self._away(kind)
        self.faults.append("{} {} {} for {:.1f} s".format(kind, key[0], key[1], away))
        if kind == "kill":
            self._job.kill(key)
        else:
            self._job.signal(key, signal.SIGSTOP)
        what = "start" if kind == "kill" else "continue"
        self._due[key] = time.monotonic() + away, what
        seen = self._progress.look()
        self._until("a global step", lambda: self._progress.look() > seen + 2)
        self._rest(self._random.uniform(0, 1.5))

    def _next(self):
        """The kind of the next fault and its process, which is not away already."""
        while True:
            self._kinds = self._kinds or self._random.sample(KINDS, len(KINDS))
            kind, keys = self._kinds.pop()
            there = [key for key in keys if key not in self._due]
            if there:
                return kind, self._random.choice(there)

    def _away(self, kind):
        """Seconds for which a process is away: often short, seldom longer than the patience."""
        if self._random.random() < 0.2:
            return self._patience * self._random.uniform(1.1, 1.6)
        if kind == "kill" and self._random.random() < 0.5:
            return 0.0
        return self._random.uniform(0, 1.5)

    def _rest(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.tick()
            time.sleep(0.02)

    def _until(self, what, condition):
        where = "{} after fault {}, {}".format(what, len(self.faults), self.faults[-3:])
        self._job.until(where, condition, self.tick)

    def everybody_works(self):
        """Waits until every worker's batches are applied again."""
        self._until("the last return", lambda: not self._due)
        seen = self._progress.look()
        for key in self._job.workers:
            self._until("a batch of {} {}".format(*key), lambda key=key: self._works(key, seen))

    def _works(self, key, seen):
        return self._progress.look() and self._progress.of(self._job, key) > seen
