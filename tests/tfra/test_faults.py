"""Invariants 2 to 5 for rows of hash tables: what the audit log says is in each row."""

import pytest

from tests.tf1.fault_cluster import (
    Job,
    Progress,
    check_audit,
    check_checkpoints,
    kill_and_start_again,
    rows_by_id,
)


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path, 3, hash_table="tfra")
    yield made
    made.stop()


def rows(reader):
    return rows_by_id(reader, ("table/table_mht_1of2", "table/table_mht_2of2"))


def test_no_update_is_lost_torn_or_doubled_when_a_worker_and_the_chief_are_killed(job):
    job.start_all()
    progress = Progress(job.audit)
    job.until("the start", lambda: progress.look() > 10)
    for key in (("worker", 1), ("worker", 0)):
        kill_and_start_again(job, progress, key)
    job.end_well()
    check_audit(job)
    assert check_checkpoints(job, rows) > 2
    assert job.staged() == [0, 0]
