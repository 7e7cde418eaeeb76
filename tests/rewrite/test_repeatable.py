"""The same MetaGraph gives the same report and bytes, whatever order Python's sets have."""

import os
import subprocess
import sys

import pytest

from semisync.common.compat import tf
from tests.rewrite import models
from tests.rewrite.training import export
from tests.rewrite.zoo import graph

pytestmark = pytest.mark.one_tensorflow

SEEDS = "1", "2", "3"

# Every worker has an identity of its own: here all have the same.
PROGRAM = """
import hashlib, os, sys, uuid

uuid.uuid4, os.getpid = (lambda: uuid.UUID(int=0)), (lambda: 1)

import graph_rewrite
from graph_rewrite.metagraph.files import read
from semisync.common.errors import BadInput

for path in sys.argv[1:]:
    try:
        meta, report = graph_rewrite.semi_synchronize(read(path), 2)
    except BadInput as error:
        print(error)
    else:
        print(report)
        print(hashlib.sha256(meta.SerializeToString(deterministic=True)).hexdigest())
"""


def trained_in_a_condition():
    """The MetaGraphDef of a job that is refused for any of its eight training ops."""
    with graph():
        step = tf.train.get_or_create_global_step()
        losses = [tf.square(tf.get_variable("v%d" % number, [])) for number in range(8)]
        optimizer = tf.train.AdagradOptimizer(0.1)
        gradients = optimizer.compute_gradients(tf.add_n(losses) * tf.placeholder(tf.float32, []))
        tf.cond(
            tf.less(step, 10),
            lambda: optimizer.apply_gradients(gradients, step),
            lambda: tf.no_op(),
        )
        return tf.train.export_meta_graph()


@pytest.mark.long
def test_a_rewrite_says_and_writes_the_same_under_every_hash_seed(tmp_path):
    jobs = [export(models.WideAndDeep).meta, trained_in_a_condition()]
    paths = [str(tmp_path / "{}.meta".format(number)) for number in range(len(jobs))]
    for path, meta in zip(paths, jobs):
        with open(path, "wb") as file:
            file.write(meta.SerializeToString())
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM] + paths,
            env=dict(os.environ, PYTHONHASHSEED=seed),
            stdout=subprocess.PIPE,
            universal_newlines=True,
        )
        for seed in SEEDS
    ]
    said = [process.communicate()[0] for process in running]
    assert all(process.returncode == 0 for process in running)
    assert said[0] == said[1] == said[2]
    assert "trains inside a tf.cond" in said[0] and "found    " in said[0]
