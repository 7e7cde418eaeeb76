"""A MetaGraph that one TensorFlow has exported, rewritten by another, trained by either.

This process has TensorFlow 2.x and starts TensorFlow 1.15 for its stages. The reference is
TensorFlow 2.x with the models' own optimizers, from the values that the training began with.
"""

import subprocess

import numpy as np
import pytest

from graph_rewrite.metagraph.files import read
from semisync.common.compat import tf
from tests.rewrite import models, stage
from tests.rewrite.training import trained_by_tensorflow
from tests.support.require import ROOT, environment, tf1_python
from tests.wrap.one_process import assert_close

pytestmark = pytest.mark.skipif(
    tf.__version__ < "2", reason="TensorFlow 2.x starts TensorFlow 1.15, not the other way round"
)

# Reference variables, a sparse Adam of several ops, sparse Ftrl, BatchNorm in conditions.
OLD = ["DeepInterest", "WideAndDeep", "SwitchedResNet"]


def in_tensorflow_1(what, directory, names):
    command = [tf1_python(), "-W", "ignore", "-m", "tests.rewrite.stage", what, str(directory)]
    variables = environment(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2")
    done = subprocess.run(
        command + names, cwd=ROOT, env=variables, stderr=subprocess.PIPE, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """Of TensorFlow 1.15's exports: what both have trained of what 2.x has rewritten."""
    directory = tmp_path_factory.mktemp("old")
    in_tensorflow_1("export", directory, OLD)
    for name in OLD:
        stage.rewrite(directory, name)
    in_tensorflow_1("train", directory, OLD)
    return directory


def check(directory, name):
    before, after = (
        dict(np.load(directory / f"{name}.{when}.npz")) for when in ("before", "after")
    )
    expected = trained_by_tensorflow(getattr(models, name), before, stage.steps(name))
    assert_close(after, expected)
    assert after["global_step"] == stage.STEPS


@pytest.mark.parametrize("name", OLD)
@pytest.mark.long
def test_1_exports_2_rewrites_1_trains(name, old):
    check(old, name)


@pytest.mark.long
def test_1_exports_2_rewrites_2_trains(old):
    stage.train(old, "SwitchedResNet")
    check(old, "SwitchedResNet")


@pytest.mark.long
def test_no_op_gets_an_attribute_of_the_tensorflow_that_rewrites(old):
    before, after = (
        {node.name: node for node in read(str(old / f"DeepInterest{suffix}")).graph_def.node}
        for suffix in (".meta", ".semi.meta")
    )
    assert [name for name in before if set(after[name].attr) - set(before[name].attr)] == []


def test_2_exports_1_rewrites_2_trains(tmp_path):
    stage.export(tmp_path, "Factors")
    in_tensorflow_1("rewrite", tmp_path, ["Factors"])
    stage.train(tmp_path, "Factors")
    check(tmp_path, "Factors")
