"""Checks of what must be true after any faults; each returns figures or raises AssertionError.

Reigns: every launcher wrote down at which instants it led. No two led at one instant.

Writes: ZooKeeper's transaction logs have every write that was accepted. The leader's epoch never
goes back, has one leader, and each generation, as many as its node's version says, was published in
one transaction with the leader's own node, so by who led then: a stale leader wrote nothing.

Batches: the audit log has every ticket once, and the last checkpoint is exactly the sum of the
batches that it says were applied, on both parameter servers (`tests.wrap.test_faults`).
"""

import json
import re
import subprocess

import numpy as np

from benchmarks.chaos_parts import cluster as clusters
from benchmarks.chaos_parts.job import SEEDS, WEIGHTS, examples
from semisync.cluster.zookeeper.connection import Connection
from semisync.cluster.zookeeper.generation import read
from semisync.common.compat import tf
from tests.support.zookeeper import classpath
from tests.wrap.test_faults import check_audit, check_checkpoints

TEST_ROWS = 20000
_DUMP = "org.apache.zookeeper.server.persistence.TxnLogToolkit"
_SEAT = re.compile(r"/leader\W.*?({[^{}]*})", re.S)
_TRANSACTION = re.compile(r"zxid 0x(\w+) (.*?)(?=\n\S+, \S+ \w+ \w+ session|\Z)", re.S)
_GENERATION = re.compile(r"/generation\W.*?\"epoch\": (\d+)", re.S)


def reigns(cluster):
    """How many reigns there were, of which no two overlap."""
    found = {}
    for place in clusters.PLACES:
        path = cluster.reign(place)
        for line in path.read_text().splitlines() if path.exists() else []:
            epoch, instant = line.split()
            first = found.get((int(epoch), place), (float(instant),))[0]
            found[int(epoch), place] = first, float(instant)
    assert len({epoch for epoch, _ in found}) == len(found), "one epoch had two leaders"
    in_order = sorted(found.items())
    for (before, (_, end)), (after, (begin, _)) in zip(in_order, in_order[1:]):
        assert end < begin, "{} and {} led at one instant".format(before, after)
    return len(found)


def writes(cluster):
    """How many generations were published, none of them by a stale leader."""
    epoch, leaders, published = 0, {}, 0
    for _, text in sorted(_transactions(cluster).items()):
        seat = _SEAT.search(text)
        if seat is not None:
            written = json.loads(seat.group(1))
            assert written["epoch"] >= epoch, "a stale leader wrote: " + text
            epoch = written["epoch"]
            if "id" in written:
                assert leaders.setdefault(epoch, written["id"]) == written["id"], text
        generation = _GENERATION.search(text)
        if generation is not None:
            assert seat is not None and int(generation.group(1)) == epoch, text
            published += 1
    client = Connection(cluster.servers.hosts + clusters.CHROOT)
    newest = read(client, "/semisync/" + clusters.JOB)
    client.close()
    assert published == newest.version + 1, "the logs lack a write"
    return published


def _transactions(cluster):
    """{zxid: its text in the log}, of all servers."""
    found = {}
    for path in sorted(cluster.out.glob("zookeeper/server-*/version-2/log.*")):
        command = ["java", "-cp", classpath(), _DUMP, "-d", str(path)]
        dump = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
            encoding="utf-8",
        )
        found.update((int(zxid, 16), text) for zxid, text in _TRANSACTION.findall(dump.stdout))
    return found


def batches(cluster):
    """A Counter of the batches' fates, none of them torn."""
    fates = check_audit(cluster)
    assert check_checkpoints(cluster) > 0
    return fates


def scores(cluster):
    """The AUC of each regression, [SEEDS], on the same rows, which none has seen."""
    random = np.random.RandomState(0)
    inputs, labels = examples(random, (TEST_ROWS,))
    reader = tf.train.load_checkpoint(str(cluster.disk))
    weights = reader.get_tensor(WEIGHTS)[:, 0]
    return np.array([_auc(labels, inputs @ weights[seed]) for seed in range(SEEDS)])


def _auc(labels, scores):
    """The AUC of scores of which no two are equal."""
    rank_sum = labels[np.argsort(scores)] @ np.arange(1, len(labels) + 1)
    positives = labels.sum()
    return (rank_sum - positives * (positives + 1) / 2) / positives / (len(labels) - positives)
