"""Invariants 2 to 5 for rows of hash tables: what the audit log says is in each row."""

import numpy as np
import pytest

from tests.tf1 import fault_job
from tests.tf1.fault_cluster import Job, Progress, check_audit, check_checkpoints


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path, 3, hash_table=True)
    yield made
    made.stop()


def rows(reader):
    """The table's rows in a checkpoint, those of both shards; 0 for an id that it lacks."""
    found = {}
    for shard in ("table/table_mht_1of2", "table/table_mht_2of2"):
        ids, values = (reader.get_tensor(shard + end) for end in ("-keys", "-values"))
        found.update(zip(ids.tolist(), values[:, 0].tolist()))
    ids = [fault_job.raw_id(row) for row in range(fault_job.ROWS)]
    assert set(found) <= set(ids)
    return np.array([found.get(id, 0.0) for id in ids])


def kill_and_start_again(job, progress, key):
    job.kill(key)
    job.start(*key)
    seen = progress.look()
    job.until("its return", lambda: progress.look() and progress.of(job, key) > seen)
    job.until("some steps", lambda: progress.look() > seen + 10)


def test_no_update_is_lost_torn_or_doubled_when_a_worker_and_the_chief_are_killed(job):
    job.start_all()
    progress = Progress(job.audit)
    job.until("the start", lambda: progress.look() > 10)
    kill_and_start_again(job, progress, ("worker", 1))
    kill_and_start_again(job, progress, ("worker", 0))
    job.end_well()
    check_audit(job)
    assert check_checkpoints(job, rows) > 2
    assert job.staged() == [0, 0]
