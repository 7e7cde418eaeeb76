"""A few random faults in a real job: `benchmarks/chaos.py` does 200."""

import os

import pytest

from benchmarks import chaos
from benchmarks.chaos_parts.network import are_allowed
from tests.support.require import fastest_tensorflow, skip_without

pytestmark = [pytest.mark.one_tensorflow, pytest.mark.long]
FAULTS = 6
# With this seed: the disk, ZooKeeper's leader killed and cut off, a worker, the chief, a link.
SEED = int(os.environ.get("FAULT_SEED", 1748))


def test_random_faults_hang_nothing_tear_nothing_and_no_stale_leader_writes(tmp_path):
    if not are_allowed():
        skip_without("root", "only root makes network namespaces")
    found = chaos.run(tmp_path, fastest_tensorflow(), FAULTS, SEED, pause=0.1)
    assert len(found["seen"]) == FAULTS
    assert found["reigns"] > 0 and found["generations"] > 0
    assert found["fates"]["admitted"] > 0
