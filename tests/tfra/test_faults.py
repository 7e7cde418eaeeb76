"""Invariants 2 to 5 for rows of hash tables: what the audit log says is in each row."""

import pytest

from tests.wrap.fault_cluster import (
    Job,
    check_kills,
    rows_by_id,
)


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path, 3, patience=60.0, hash_table="tfra")
    yield made
    made.stop()


def rows(reader):
    return rows_by_id(reader, ("table/table_mht_1of2", "table/table_mht_2of2"))


@pytest.mark.long
def test_no_update_is_lost_torn_or_doubled_when_a_worker_and_the_chief_are_killed(job):
    check_kills(job, rows)
