"""Invariants 2 to 5 under faults: no batch is torn, no ticket forgotten, every wait ends.

Every job here is a real cluster of processes that are killed (kill -9), stopped (SIGSTOP) and
started again. Deadlines are there against hangs alone and say nothing about speed.
"""

import collections
import os
import signal
import sys

import pytest

from semisync import audit
from tests.wrap import fault_job
from tests.wrap.fault_cluster import Job, Progress, check_audit, check_checkpoints
from tests.wrap.fault_supervisor import Supervisor

SEED = int(os.environ.get("FAULT_SEED", sys.version_info[1]))  # other faults on each Python
FAULTS = int(os.environ.get("FAULTS", 6))
PATIENCE = 6.0
LONG = 1e6  # a wait that lasts as long is a hang
WAITS = "waiting for the chief to hand out tickets"


@pytest.fixture
def job(tmp_path):
    """Makes jobs and ends them."""
    made = []

    def make(workers, patience=PATIENCE, **more):
        made.append(Job(tmp_path, workers, patience=patience, **more))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def at_work(job):
    """Starts all of a job and waits until it trains; returns its Progress."""
    job.start_all()
    progress = Progress(job.audit)
    job.until("the start", lambda: progress.look() > 3)
    return progress


def events(job):
    """The audit log so far."""
    return audit.read(job.audit) if os.path.exists(job.audit) else []


def chiefs(job):
    """The audit log's entry of each chief."""
    return [event for event in events(job) if event["event"] == "begin"]


@pytest.mark.long
def test_random_faults_in_a_row_tear_no_batch_and_hang_no_process(job):
    print("FAULT_SEED={} FAULTS={}".format(SEED, FAULTS))
    job = job(3)
    supervisor = Supervisor(job, at_work(job), PATIENCE, SEED)
    for _ in range(FAULTS):
        supervisor.fault()
    supervisor.everybody_works()
    job.end_well()
    counts = check_audit(job)
    print(supervisor.faults, collections.Counter(supervisor.gave_up), counts, sep="\n")
    # A chief that dies before its patience ends takes the tickets along that it would have lost.
    assert counts["lost"] + counts["ended with the chief"] > 0
    assert check_checkpoints(job) > 2
    assert job.staged() == [0, 0]


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_a_worker_gives_up_a_chief_that_is_gone_for_good(job):
    job = job(2)
    at_work(job)
    job.kill(("worker", 0))
    assert job.ended(("worker", 1)) == 1
    assert "SemisyncError: no sign of life from the chief" in job.error(("worker", 1))


@pytest.mark.one_tensorflow
@pytest.mark.parametrize("task", [0, 1])
@pytest.mark.few(1)
@pytest.mark.long
def test_a_ps_that_is_frozen_for_good_is_named_by_everybody(job, task):
    job = job(2, patience=2 * PATIENCE)  # a quarter of it is the other's time to answer
    at_work(job)
    job.signal(("ps", task), signal.SIGSTOP)
    assert [job.ended(key) for key in job.workers] == [1, 1]
    for key in job.workers:
        assert "/job:ps/task:{} did not answer for".format(task) in job.words(key)


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_two_paced_optimizers_never_wait_for_each_others_tickets(job):
    job = job(3, batches_per_step=2, twins=True, patience=60.0)
    progress = at_work(job)
    job.until("forty steps", lambda: progress.look() > 40)
    job.end_well()
    assert check_audit(job)["lost"] == 0
    assert "its batch is lost" not in job.words(("worker", 0))


@pytest.mark.one_tensorflow
@pytest.mark.long
def test_workers_end_at_very_different_times_and_each_batch_counts_once(job):
    job = job(3, patience=60.0)
    for task in range(2):
        job.start("ps", task)
    for task, batches in enumerate([5, 30, 151]):
        job.start("worker", task, batches=batches)
    assert [job.ended(key) for key in job.workers] == [0, 0, 0], job.story()
    counts = check_audit(job)
    assert counts["admitted"] + counts["stale"] == 5 + 30 + 151
    assert counts["lost"] == 0
    check_checkpoints(job)
    assert job.staged() == [0, 0]


@pytest.mark.one_tensorflow
@pytest.mark.long
def test_a_worker_that_comes_after_the_end_is_told_so_until_a_chief_comes_back(job):
    job = job(2, batches=8, patience=LONG)
    job.start_all()
    assert [job.ended(key) for key in job.workers] == [0, 0], job.story()
    job.start("worker", 1)
    assert job.ended(("worker", 1)) == 0, job.story()
    assert "the training is over" in job.words(("worker", 1))
    job.start("worker", 0)  # from the checkpoint of the end, and does not wait for the late one
    assert job.ended(("worker", 0)) == 0, job.story()
    job.start("worker", 0, batches=None)
    progress = Progress(job.audit)
    before = progress.look()
    job.until("the return of the chief", lambda: len(chiefs(job)) == 3)
    job.start("worker", 1, batches=None)
    job.until("training with it", lambda: progress.look() and progress.of(job, job.workers[1]))
    job.end_well()
    assert "the training is over" not in job.words(("worker", 1))
    assert progress.look() > before
    check_audit(job)
    check_checkpoints(job)


@pytest.mark.one_tensorflow
@pytest.mark.long
def test_in_a_job_of_two_sessions_a_worker_that_is_early_waits_for_the_chief_of_the_second(job):
    job = job(2, batches=8, patience=LONG, sessions=2)
    job.start_all()
    job.until("the end of the first", lambda: events(job)[-1:] == [{"event": "end"}])
    waits = job.words(("worker", 1)).count(WAITS)
    job.until("its wait", lambda: job.words(("worker", 1)).count(WAITS) > waits)
    (job.out / fault_job.NEXT).touch()
    assert [job.ended(key) for key in job.workers] == [0, 0], job.story()
    assert "the training is over" not in job.words(("worker", 1))
    counts = check_audit(job)
    assert counts["admitted"] + counts["stale"] == 2 * 2 * 8


@pytest.mark.one_tensorflow
@pytest.mark.long
def test_a_worker_that_slept_through_the_end_ends_too(job):
    job, key = job(2), ("worker", 1)
    for task in range(2):
        job.start("ps", task)
    job.start("worker", 0, batches=200)
    job.start("worker", 1, patience=LONG)
    progress = Progress(job.audit)
    job.until("its first batch", lambda: progress.look() and progress.of(job, key) > 0)
    job.signal(key, signal.SIGSTOP)
    assert job.ended(("worker", 0)) == 0, job.story()
    job.signal(key, signal.SIGCONT)
    assert job.ended(key) == 0, job.story()


@pytest.mark.long
@pytest.mark.one_tensorflow
def test_a_second_chief_ends_the_first(job):
    job = job(2)
    progress = at_work(job)
    job.kill(("worker", 1))
    job.start("worker", 1, chief=True)
    assert job.ended(("worker", 0)) == 1
    assert "SemisyncError: another process has become chief" in job.error(("worker", 0))
    seen = progress.look()
    job.until("training with the second chief", lambda: progress.look() > seen + 3)


@pytest.mark.one_tensorflow
@pytest.mark.parametrize(
    "other, says",
    [
        ({"batches_per_step": 5}, "batches_per_step is 5 here and 4 there"),
        ({"bound": 7}, "staleness 5 weighs 1 here and 0 there"),
    ],
)
@pytest.mark.long
def test_a_worker_with_other_settings_ends_the_job_with_one_sentence(job, other, says):
    job = job(2)
    at_work(job)
    job.kill(("worker", 1))
    job.start("worker", 1, **other)
    assert job.ended(("worker", 1)) == 1
    assert "UsageError" in job.error(("worker", 1))
    assert says in job.error(("worker", 1))
    assert job.ended(("worker", 0)) == 1
    assert "SemisyncError: /job:worker/task:1" in job.error(("worker", 0))
    assert says in job.error(("worker", 0))


@pytest.mark.one_tensorflow
def test_a_worker_that_comes_back_with_an_old_token_changes_nothing(job):
    job = job(3, bound=10**6)  # so that it sends its batch, however stale that is
    progress, key = at_work(job), ("worker", 1)
    job.until("its first batch", lambda: progress.look() and progress.of(job, key) > 0)
    job.signal(key, signal.SIGSTOP)
    lost, earlier = [], len(audit.read(job.audit))

    def is_lost():
        events = audit.read(job.audit)[earlier:]
        lost.extend(e for e in events if e["event"] == "lost" and "task:1" in e["member"])
        return lost

    job.until("the loss of its ticket", is_lost)
    seen = progress.look()
    job.signal(key, signal.SIGCONT)
    job.until("its return", lambda: progress.look() and progress.of(job, key) > seen)
    job.end_well()
    check_audit(job)
    check_checkpoints(job)
    applied = {b["ticket"] for step in audit.steps(job.audit) for b in step["batches"]}
    assert lost[0]["ticket"] not in applied
    late = [event for event in audit.read(job.audit) if event["event"] == "lost"]
    assert "'late': {}".format(len(late)) in job.words(("worker", 0))
    assert job.staged() == [0, 0]
