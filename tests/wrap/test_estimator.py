"""A real Estimator job, train_and_evaluate with TF_CONFIG: 1 PS, the chief and a worker."""

import pytest

from semisync import audit
from semisync.cluster.forked import ForkedCluster
from semisync.common.compat import tf
from tests.wrap.estimator_job import M


def train(tmp_path, late=False, **spec):
    """Trains until every process has ended alone; returns the global step and the audit log.

    Args:
        late: a worker starts again after the end, and ends, too.
    """
    if not hasattr(tf, "estimator"):
        pytest.skip("TensorFlow 2.x has no Estimator any more")
    with ForkedCluster("tests.wrap.estimator_job", 1, 2, tmp_path) as cluster:
        cluster.start_all(out=str(tmp_path), **spec)
        cluster.wait(timeout=600)
        if late:
            cluster.start("worker", 1, out=str(tmp_path), late=True, **spec)
            cluster.wait(timeout=200)  # less than its patience, 300 s
    last = tf.train.latest_checkpoint(str(tmp_path / "model"))
    step = int(tf.train.NewCheckpointReader(last).get_tensor("global_step"))
    return step, str(tmp_path / "audit")


@pytest.mark.long
def test_it_ends_at_the_last_step(tmp_path):
    step, log = train(tmp_path, max_steps=15, batches=None)
    assert step >= 15
    assert len(audit.steps(log)) == step
    fates = audit.check(log)
    assert fates["admitted"] >= 15 * M
    assert fates["lost"] == fates["ended with the chief"] == 0


@pytest.mark.parametrize(
    "ends", [{"max_steps": 4, "batches": None}, {"max_steps": None, "batches": [9, 4]}]
)
@pytest.mark.long
def test_a_worker_that_comes_after_the_end_ends_well(ends, tmp_path):
    train(tmp_path, late=True, **ends)
    assert b"Error" not in (tmp_path / "worker-1.log").read_bytes()


@pytest.mark.long
def test_it_ends_with_its_data_and_applies_all_of_it(tmp_path):
    step, log = train(tmp_path, max_steps=None, batches=[9, 4])
    assert step == len(audit.steps(log)) == 7
    assert [len(event["batches"]) for event in audit.steps(log)] == [2] * 6 + [1]
    fates = audit.check(log)
    assert fates["admitted"] == 9 + 4
    assert fates["lost"] == fates["ended with the chief"] == 0
