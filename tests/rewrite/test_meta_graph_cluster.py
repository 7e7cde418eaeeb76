"""Rewritten MetaGraphs on a real cluster: 4 PS and 3 workers, each a process of its own."""

import json
from collections import namedtuple

import numpy as np
import pytest

import graph_rewrite
from semisync import audit
from semisync.cluster.forked import ForkedCluster
from semisync.common.compat import tf
from tests.rewrite import models
from tests.rewrite.training import export, trained_by_tensorflow
from tests.support.asked import asked
from tests.wrap.one_process import assert_close

pytestmark = pytest.mark.one_tensorflow

PS, WORKERS, BATCHES, M = 4, 3, 8, 2

# A job: the class of its `Model`, whether its variables are resources, what `semi_synchronize` is
# asked for, and how many examples each worker's batches have.
Case = namedtuple("Case", "kind resource options sizes")
PACED, EVEN = {"paced": True}, [models.SIZE] * WORKERS


def decayed(staleness):
    """A policy by which every batch counts less than 1, and less the later it is."""
    return 1 / (staleness + 2)


CASES = {
    "sync_replicas": Case(models.SyncSquare, False, PACED, EVEN),
    "uncounted": Case(models.UncountedSquare, True, PACED, EVEN),
    "unplaced_ref": Case(models.AdamSquare, False, dict(PACED, ps=PS), EVEN),
    "unplaced_resource": Case(models.Square, True, dict(PACED, ps=PS), EVEN),
    "resnet": Case(models.ResNet, False, PACED, EVEN),
    "unpaced_resnet": Case(models.ResNet, False, {"staleness": decayed}, [3, 6, 11]),
}
LONG = ("uncounted", "unplaced_ref", "resnet")
PACED_CASES = [
    pytest.param(name, marks=pytest.mark.long if name in LONG else ())
    for name, case in CASES.items()
    if "paced" in case.options
]


def write(name, directory):
    """Exports a case's plain job as worker 1 has it, rewrites it; returns the case for `job`.

    One that is rewritten for a number of parameter servers is exported without devices.
    """
    case = CASES[name]
    cluster = {"ps": ["a:1"] * PS, "worker": ["b:1"] * WORKERS}
    setter = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(cluster), worker_device="/job:worker/task:1"
    )
    exported = export(case.kind, case.resource, name, None if "ps" in case.options else setter)
    meta, report = graph_rewrite.semi_synchronize(exported.meta, M, name=name, **case.options)
    assert any("/job:worker" in change for change in report.changes)
    path = directory / (name + ".meta")
    path.write_bytes(meta.SerializeToString())
    return {
        "name": name,
        "model": case.kind.__name__,
        "meta": str(path),
        "train": exported.train,
        "feeds": exported.feeds,
        "batches": BATCHES,
        "sizes": case.sizes,
    }


@pytest.fixture(scope="module")
def out(request, tmp_path_factory):
    """The directory where one cluster has trained the cases asked for, one after the other."""
    out = tmp_path_factory.mktemp("cluster")
    cases = [write(name, out) for name in asked(request)]
    with ForkedCluster("tests.rewrite.job", PS, WORKERS, out) as cluster:
        cluster.start_all(cases=cases, out=str(out))
        cluster.wait(timeout=400)
    return out


def steps(out, name):
    """[[(task, number, weight)]] of a case: the batches of each global step, by the audit log."""
    trained = {}
    for task in range(WORKERS):
        for entry in json.loads((out / "{}.{}.json".format(name, task)).read_text()):
            trained[entry["ticket"]] = entry["task"], entry["number"]
    log = str(out / (name + ".audit"))
    fates = audit.check(log)
    assert fates["lost"] == fates["ended with the chief"] == 0
    found = [
        [trained[batch["ticket"]] + (batch["weight"],) for batch in event["batches"]]
        for event in audit.steps(log)
    ]
    assert sorted(batch[:2] for step in found for batch in step) == sorted(trained.values())
    assert [len(step) for step in found] == [M] * (WORKERS * BATCHES // M)
    return found


def variables(out, name, when):
    return dict(np.load(str(out / "{}.{}.npz".format(name, when))))


@pytest.mark.long
@pytest.mark.parametrize("name", PACED_CASES)
def test_workers_that_import_it_train_the_global_batch(name, out):
    case = CASES[name]
    model = case.kind()
    batches = [[model.batch(task, number) for task, number, _ in step] for step in steps(out, name)]
    before, after = variables(out, name, "before"), variables(out, name, "after")
    assert_close(after, trained_by_tensorflow(case.kind, before, batches, case.resource, name))


@pytest.mark.parametrize("name", ["unpaced_resnet"])
def test_moving_statistics_are_those_of_the_batches_in_the_audit_log(name, out):
    """Invariant 9: of the input's BatchNorm, whose values do not depend on any variable."""
    case, before = CASES[name], variables(out, name, "before")
    model, found = case.kind(), steps(out, name)
    mean = before["bn_input/moving_mean"].astype(np.float64)
    variance = before["bn_input/moving_variance"].astype(np.float64)
    for step in found:
        values = [
            model.batch(task, number, case.sizes[task])["images"].reshape(-1, 3)
            for task, number, _ in step
        ]
        counts = np.concatenate([[weight] * len(x) for x, (_, _, weight) in zip(values, step)])
        x, n = np.concatenate(values).astype(np.float64), counts.sum()
        batch_mean = counts @ x / n
        batch_variance = counts @ np.square(x - batch_mean) / (n - 1)  # as TensorFlow corrects it
        keep = models.MOMENTUM ** sum(weight for _, _, weight in step)
        mean = keep * mean + (1 - keep) * batch_mean
        variance = keep * variance + (1 - keep) * batch_variance
    after = variables(out, name, "after")
    np.testing.assert_allclose(after["bn_input/moving_mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(after["bn_input/moving_variance"], variance, rtol=1e-5)
    assert max(weight for step in found for _, _, weight in step) < 1
