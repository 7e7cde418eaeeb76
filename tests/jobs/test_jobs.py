"""Whole jobs as they are written for TensorFlow 1.x, before and after the documented change.

Each script in `scripts` runs on a real cluster with the change that stands beside it. The audit log
of the changed job says which batches made each global step. The unchanged script, run as a single
worker that reads them as one batch, must end with the same variables. An unchanged script of each
kind runs on a cluster, too: it is a job.
"""

import collections
import shutil
import subprocess
import sys

import numpy as np
import pytest

from semisync import audit
from semisync.common.compat import tf
from tests.jobs import data
from tests.jobs.jobs import JOBS, OF_EACH_KIND
from tests.jobs.run import DEADLINE, Run, preload, read_checkpoint
from tests.jobs.unions import numbered, rows_of
from tests.support import job_changes

pytestmark = pytest.mark.skipif(
    not hasattr(tf, "estimator"), reason="these jobs use what only TensorFlow 1.x has"
)

WORKERS = 2
M = 2
STEPS = WORKERS * data.BATCHES // M  # global steps when every batch counts once


class Trained:
    """A job after its change, on a cluster of its own."""

    def __init__(self, job, directory):
        self.job, self._directory = job, directory
        self._script, changes = job_changes.read(job.name)
        self._files = [directory / "part-{}.csv".format(worker) for worker in range(WORKERS)]
        for worker, path in enumerate(self._files):
            data.write(path, data.rows(worker))
        if job.graph:
            command([str(job_changes.SCRIPTS / (job.graph + ".py"))], directory)
        preload()
        after = self._place("after")
        for words in job_changes.commands(changes):
            command(["-m"] + words, after)
        changed = job_changes.apply(self._script, changes)
        self.after = Run(job, changed, after, self._files, data.BATCH, STEPS)

    def _place(self, name):
        """A new directory for one run, with what the job finds there."""
        place = self._directory / name
        place.mkdir()
        for graph in self._directory.glob("*.meta"):
            shutil.copy(str(graph), str(place))
        return place

    def stop(self):
        self.after.stop()

    def logs(self):
        """Paths of the audit logs, once the changed job has ended."""
        self.after.wait()
        return [str(self.after.directory / name) for name in self.job.audits]

    def global_batches(self):
        """The batches of every global step of the changed job, see `numbered`."""
        return numbered(self.logs()[0], self.job.has_chief)

    def train_unchanged(self):
        """Trains the unchanged script on a cluster; returns the variables after the last step."""
        steps = STEPS if self.job.synchronous else STEPS * M
        run = Run(self.job, self._script, self._place("before"), self._files, data.BATCH, steps)
        # SyncReplicasOptimizer's chief may leave a worker behind, which waits for a token for ever.
        return _ended(run, chief_only=self.job.synchronous)

    def train_globally(self, name, steps):
        """Trains the unchanged script alone from where the changed one began.

        Args:
            name: of a new directory.
            steps: of `global_batches`.

        Returns:
            The variables after the last step.
        """
        place = self._place(name)
        model = place / "model"
        model.mkdir()
        for part in self.after.model.glob("model.ckpt-0.*"):
            shutil.copy(str(part), str(model))
        tf.train.update_checkpoint_state(str(model), str(model / "model.ckpt-0"))
        data.write(place / "data.csv", rows_of(steps, M))
        alone = self.job._replace(ps=1, arguments=self.job.arguments + self.job.alone)
        rows = M * data.BATCH
        return _ended(Run(alone, self._script, place, [place / "data.csv"], rows, len(steps)))


def _ended(run, chief_only=False):
    """The variables of a run, once it has ended."""
    try:
        run.wait(chief_only)
    finally:
        run.stop()
    return run.variables()


def command(words, directory):
    """Runs Python with these arguments."""
    done = subprocess.run(
        [sys.executable] + words,
        cwd=str(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=DEADLINE,
    )
    assert done.returncode == 0, done.stdout.decode()


def of_each_kind():
    """The jobs, of which make test trains one of each kind."""
    long = [pytest.param(job, marks=pytest.mark.long) for job in JOBS[OF_EACH_KIND:]]
    return JOBS[:OF_EACH_KIND] + long


@pytest.fixture(scope="module", params=of_each_kind(), ids=lambda job: job.name)
def trained(request, tmp_path_factory):
    job = Trained(request.param, tmp_path_factory.mktemp(request.param.name))
    yield job
    job.stop()


def differing(found, expected):
    """Names of the variables that are not what is expected; both sides must have each."""
    assert sorted(found) == sorted(expected)
    return {
        name
        for name, value in expected.items()
        if not np.allclose(found[name], value, rtol=2e-4, atol=2e-5)
    }


@pytest.mark.long
@pytest.mark.parametrize("trained", JOBS[:OF_EACH_KIND], indirect=True, ids=lambda job: job.name)
def test_the_job_trains_to_its_end_as_it_was(trained):
    step = trained.train_unchanged()["global_step"]
    assert step >= (STEPS if trained.job.synchronous else data.BATCHES)


@pytest.mark.few(1)
def test_the_changed_job_counts_every_batch_once(trained):
    for log in trained.logs():
        counts = +audit.check(log)
        assert set(counts) <= {"admitted", "returned"}
        assert counts["admitted"] >= STEPS * M
        weights = {(b["staleness"], b["weight"]) for s in audit.steps(log) for b in s["batches"]}
        assert weights == {(0, 1.0)}


@pytest.mark.few(1)
def test_the_changed_job_trains_in_global_batches_of_all_its_data(trained):
    steps = trained.global_batches()
    assert [len(step) for step in steps[:STEPS]] == [M] * STEPS
    if not trained.job.trains_to_a_step:
        each = collections.Counter(worker for step in steps for worker, _ in step)
        assert each == dict.fromkeys(range(WORKERS), data.BATCHES)


@pytest.mark.few(1)
def test_all_optimizers_of_a_job_take_the_same_batches(trained):
    for log in trained.logs():
        batches = [sorted(step) for step in numbered(log, trained.job.has_chief)]
        assert batches == [sorted(step) for step in trained.global_batches()]


@pytest.mark.few(1)
def test_the_changed_job_trains_as_one_worker_with_the_global_batch(trained):
    steps = trained.global_batches()
    begin = read_checkpoint(str(trained.after.model / "model.ckpt-0"))
    end = trained.after.variables()
    assert end["global_step"] == len(steps)
    assert len(differing(end, begin)) > len(begin) / 2  # it did train
    assert differing(end, trained.train_globally("alone", steps)) == set()


@pytest.mark.parametrize("trained", JOBS[:1], indirect=True, ids=lambda job: job.name)
def test_a_batch_in_another_step_would_be_noticed(trained):
    steps = trained.global_batches()
    steps[1][0], steps[2][0] = steps[2][0], steps[1][0]
    assert differing(trained.after.variables(), trained.train_globally("swapped", steps))
