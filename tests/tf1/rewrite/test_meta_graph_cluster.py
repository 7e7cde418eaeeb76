"""A rewritten MetaGraph on a real cluster: 2 PS and 3 workers in separate processes."""

import json
import sys

import numpy as np
import pytest

import graph_rewrite
from semisync.compat import tf
from semisync.demo.local_cluster import LocalCluster
from tests.support.require import ROOT
from tests.tf1.job import batch, build_loss
from tests.tf1.one_process import assert_close

PS, WORKERS, BATCHES = 2, 3, 12


def export(path, case):
    """Exports the plain job as worker 1 has it; returns the names of what is fetched and fed."""
    cluster = {"ps": ["a:1"] * PS, "worker": ["b:1"] * WORKERS}
    setter = tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(cluster), worker_device="/job:worker/task:1"
    )
    with tf.Graph().as_default(), tf.device(setter), tf.variable_scope("run"):
        ids = tf.placeholder(tf.int64, [None, 4])
        targets = tf.placeholder(tf.float32, [None])
        step = tf.train.get_or_create_global_step()
        loss = build_loss("square", ids, targets, case["resource"])
        train = case["optimizer"]().minimize(loss, global_step=step)
        meta = tf.train.export_meta_graph()
    meta, report = graph_rewrite.semi_synchronize(meta, 2, paced=True)
    assert any("/job:worker" in change for change in report.changes)
    path.write_bytes(meta.SerializeToString())
    return {"train": train.name, "ids": ids.name, "targets": targets.name}


CASES = {
    # With Adam's own epsilon a gradient that cancels out moves by its sign, and the order of a sum
    # decides on that.
    "adam, reference variables": {
        "optimizer": lambda: tf.train.AdamOptimizer(epsilon=1e-3),
        "resource": False,
    },
    "adagrad, resource variables": {
        "optimizer": lambda: tf.train.AdagradOptimizer(0.1),
        "resource": True,
    },
}


def on_unions(case, before, steps):
    """Trains the plain optimizer from `before` on each step's union of batches."""
    with tf.Graph().as_default(), tf.Session() as session:
        ids = tf.placeholder(tf.int64, [None, 4])
        targets = tf.placeholder(tf.float32, [None])
        with tf.variable_scope("run"):
            loss = build_loss("square", ids, targets, case["resource"])
            step = tf.train.get_or_create_global_step()
            train = case["optimizer"]().minimize(loss, global_step=step)
        variables = {v.op.name.split("/", 1)[1]: v for v in tf.global_variables()}
        for name, variable in variables.items():
            variable.load(before[name], session)
        for inputs in steps:
            feed = zip(*inputs)
            session.run(
                train, {ids: np.concatenate(next(feed)), targets: np.concatenate(next(feed))}
            )
        return session.run(variables)


@pytest.mark.parametrize("name", sorted(CASES))
def test_workers_that_import_it_train_the_global_batch(name, tmp_path):
    case = CASES[name]
    spec = export(tmp_path / "out.meta", case)
    spec.update(meta=str(tmp_path / "out.meta"), batches=BATCHES, out=str(tmp_path))
    with LocalCluster(
        sys.executable, "tests.tf1.rewrite.job", PS, WORKERS, tmp_path, cwd=str(ROOT)
    ) as cluster:
        cluster.start_all(**spec)
        cluster.wait(timeout=300)
    trained = {}
    for task in range(WORKERS):
        for entry in json.loads((tmp_path / "run.{}.json".format(task)).read_text()):
            trained[entry["ticket"]] = batch(entry["task"], entry["number"])
    audit = [json.loads(line) for line in (tmp_path / "run.audit").read_text().splitlines()]
    steps = [
        [trained[audited["ticket"]] for audited in entry["batches"]]
        for entry in audit
        if entry["event"] == "step"
    ]
    assert [len(step) for step in steps] == [2] * (WORKERS * BATCHES // 2)
    before = np.load(str(tmp_path / "run.before.npz"))
    after = np.load(str(tmp_path / "run.after.npz"))
    assert_close(dict(after), on_unions(case, before, steps))
