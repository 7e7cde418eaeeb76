"""A job whose processes are killed, stopped and started again."""

import json
import os
import re
import signal
import time

import numpy as np
import pytest

from semisync import audit
from semisync.cluster.forked import ForkedCluster
from semisync.common.compat import raw_ops, tf
from tests.wrap import fault_job

DEADLINE = 300.0  # seconds after which a wait of these tests is a hang


class Job(ForkedCluster):
    """Two PS and some workers, of which task 0 is the chief.

    Args:
        out: a pathlib directory.
        workers: how many.
        more: changes to the spec, see `tests.wrap.fault_job`.
    """

    def __init__(self, out, workers, **more):
        super().__init__("tests.wrap.fault_job", 2, workers, out)
        self.out = out
        self._read = {}  # (job, task) -> how long the log was before the process was started
        self._spec = dict(fault_job.SPEC, out=str(out), **more)
        self.audit = str(out / fault_job.AUDIT)
        self.workers = [("worker", task) for task in range(workers)]

    def start(self, job, task, **more):
        log = self.log(job, task)
        self._read[job, task] = os.path.getsize(log) if os.path.exists(log) else 0
        spec = dict(self._spec, chief=task == 0)
        spec.update(more)
        return super().start(job, task, **spec)

    def signal(self, key, number):
        """Sends a signal to a process, unless it has ended."""
        if self.processes[key].poll() is None:
            os.kill(self.processes[key].pid, number)

    def kill(self, key):
        """kill -9, and waits until the process is gone."""
        self.signal(key, signal.SIGKILL)
        self.processes[key].wait()

    def words(self, key):
        """What a process has printed since it was started last."""
        with open(self.log(*key), "rb") as log:
            log.seek(self._read[key])
            return log.read().decode("utf8", "replace")

    def error(self, key):
        """The error that ended a process, one line."""
        lines = self.words(key).splitlines()
        errors = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
        return (errors or lines[-3:] or ["it said nothing"])[-1]

    def until(self, what, condition, tick=lambda: None, deadline=DEADLINE):
        """Waits until `condition()`; fails with the last words of all if that takes too long."""
        late = time.monotonic() + deadline
        while not condition():
            if time.monotonic() > late:
                pytest.fail(
                    "{} took more than {:.0f} s\n{}".format(what, deadline, self.where_all_are())
                )
            tick()
            time.sleep(0.02)

    def ended(self, key, deadline=DEADLINE):
        """Waits until a process has ended by itself; returns its exit code."""
        process = self.processes[key]
        what = "the end of {} {}".format(*key)
        self.until(what, lambda: process.poll() is not None, deadline=deadline)
        return process.poll()

    def end_well(self):
        """Tells the workers to end, and waits until all have, without an error."""
        (self.out / fault_job.STOP).touch()
        for key in self.workers:
            assert self.ended(key) == 0, self.story()

    def staged(self):
        """How many payloads are staged on each PS."""
        with tf.Graph().as_default():
            sizes = []
            for task in range(2):
                with tf.device("/job:ps/task:{}".format(task)):
                    name = "{}/staging_{}".format(fault_job.NAME, task)
                    sizes.append(raw_ops.OrderedMapSize(dtypes=[tf.float32], shared_name=name))
            config = tf.ConfigProto(device_filters=["/job:ps"])
            with tf.Session("grpc://" + self.addresses["ps"][0], config=config) as session:
                return [int(size) for size in session.run(sizes)]

    def where_all_are(self):
        """The story, with the traceback of every thread of the workers that run."""
        for key in self.workers:
            self.signal(key, signal.SIGCONT)
            self.signal(key, signal.SIGUSR1)
        time.sleep(1.0)
        return self.story(80)

    def story(self, lines=12):
        """The last words of every process and the end of the audit log."""
        parts = []
        for key, process in sorted(self.processes.items()):
            last = "\n".join(line[:300] for line in self.words(key).splitlines()[-lines:])
            parts.append("--- {} {} (exit code {})\n{}".format(*(key + (process.poll(), last))))
        if os.path.exists(self.audit):
            with open(self.audit) as log:
                parts.append("--- audit\n" + "".join(line[:200] for line in log.readlines()[-5:]))
        return "\n".join(parts)


class Progress:
    """Follows an audit log while it grows."""

    def __init__(self, path):
        self._path, self._offset, self._rest = path, 0, ""
        self.steps = 0  # applied so far, over all chiefs
        self.last = {}  # member -> how many steps were applied when its last batch was

    def look(self):
        """Reads what is new; returns the number of steps."""
        if os.path.exists(self._path):
            with open(self._path) as log:
                log.seek(self._offset)
                text = self._rest + log.read()
                self._offset = log.tell()
            lines = text.split("\n")
            self._rest = lines.pop()
            for line in lines:
                self._book(line)
        return self.steps

    def of(self, job, key):
        """How many steps were applied when the last batch of a running process was; 0: none."""
        process = ":{} ".format(job.processes[key].pid)
        return max([at for member, at in self.last.items() if process in member], default=0)

    def _book(self, line):
        if '"event": "step"' in line:
            try:
                batches = json.loads(line)["batches"]
            except ValueError:
                return  # torn by a kill
            self.steps += 1
            self.last.update((batch["member"], self.steps) for batch in batches)


def lineage(events):
    """The batches of each global step that the variables went through in the end.

    A chief begins at the step of the checkpoint: what was applied after that is forgotten.
    """
    applied = {}
    for event in events:
        if event["event"] == "begin":
            applied = {step: b for step, b in applied.items() if step < event["step"]}
        elif event["event"] == "step":
            assert event["step"] not in applied
            applied[event["step"]] = event["batches"]
    assert sorted(applied) == list(range(len(applied)))
    return [applied[step] for step in range(len(applied))]


def table_after(steps):
    """What the table holds after each number of steps, [len(steps) + 1, rows] in float64."""
    table = np.zeros([len(steps) + 1, fault_job.ROWS])
    for number, batches in enumerate(steps):
        table[number + 1] = table[number]
        for each in batches:
            share = each["weight"] / len(batches)
            row, addend = fault_job.row(each["ticket"]), fault_job.addend(each["ticket"])
            table[number + 1, row] += share * addend
    return table


def _whole_table(reader):
    return reader.get_tensor("table")[:, 0]


def check_checkpoints(job, read=_whole_table):
    """Each checkpoint, the last one too, holds exactly the audited batches in every variable.

    Args:
        read: function of a checkpoint's reader that returns the table's rows [ROWS].
    """
    steps = lineage(audit.read(job.audit))
    tables = table_after(steps)
    state = tf.train.get_checkpoint_state(str(job.out / fault_job.CHECKPOINTS))
    for prefix in state.all_model_checkpoint_paths:
        reader = tf.train.NewCheckpointReader(prefix)
        left, right, step = map(reader.get_tensor, ("left", "right", "global_step"))
        # Whole multiples of 1/4 but for the last, partial step: the difference of one batch shows.
        np.testing.assert_allclose(left, right, atol=0.02, err_msg=prefix)
        np.testing.assert_allclose(read(reader), tables[step], atol=0.02, err_msg=prefix)
        np.testing.assert_allclose(left, tables[step].sum(), atol=0.02, err_msg=prefix)
    assert step == len(steps)
    return len(state.all_model_checkpoint_paths)


def rows_by_id(reader, shards, free=()):
    """The rows of both shards of a hash table in a checkpoint; 0 for an id that it lacks.

    Args:
        free: keys of no id.
    """
    found = {}
    for shard in shards:
        ids, values = (reader.get_tensor(shard + end) for end in ("-keys", "-values"))
        found.update(zip(ids.ravel().tolist(), values[:, 0].tolist()))
    ids = [fault_job.raw_id(row) for row in range(fault_job.ROWS)]
    assert set(found) <= {*ids, *free}
    return np.array([found.get(id, 0.0) for id in ids])


def kill_and_start_again(job, progress, key):
    """Kills a process that trains, and waits until it has trained again."""
    job.kill(key)
    job.start(*key)
    seen = progress.look()
    job.until("its return", lambda: progress.look() and progress.of(job, key) > seen)
    job.until("some steps", lambda: progress.look() > seen + 10)


def check_kills(job, rows):
    """Trains while a worker and the chief are killed: each batch counts once and whole.

    Args:
        rows: as for `check_checkpoints`.
    """
    job.start_all()
    progress = Progress(job.audit)
    job.until("the start", lambda: progress.look() > 10)
    for key in (("worker", 1), ("worker", 0)):
        kill_and_start_again(job, progress, key)
    job.end_well()
    check_audit(job)
    assert check_checkpoints(job, rows) > 2
    assert job.staged() == [0, 0]


def check_audit(job):
    """Every ticket that a chief gave out came to one end, over all chiefs."""
    events = audit.read(job.audit)
    issued = [ticket for e in events if e["event"] == "issued" for ticket in e["tickets"]]
    settled = [b["ticket"] for e in events for b in e.get("batches", [e]) if "ticket" in b]
    assert len(issued) == len(set(issued))
    assert len(settled) == len(set(settled))
    counts = audit.check(job.audit)
    assert sum(counts.values()) == len(issued)
    assert events[-1] == {"event": "end"}
    return counts
