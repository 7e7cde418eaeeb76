"""Whole models of others' making, exported, rewritten and trained in one process.

The reference is TensorFlow with the models' own optimizers. Variables are references in
TensorFlow 1 and resources in TensorFlow 2, as jobs there have them. The zoo on a cluster:
`test_meta_graph_cluster`.
"""

import numpy as np
import pytest
from tensorflow.python.framework.meta_graph import strip_graph_default_valued_attrs

import graph_rewrite
from tests.rewrite import models, zoo
from tests.rewrite.training import export, train, trained_by_tensorflow
from tests.support.control_flow import control_flow
from tests.support.require import skip_without
from tests.wrap.one_process import assert_close

M, STEPS = 3, 4


def check(kind, resource=zoo.TF2):
    """Trains the rewritten job and the reference; returns the report."""
    exported = export(kind, resource)
    meta, report = graph_rewrite.semi_synchronize(exported.meta, M, paced=True)
    steps = [[kind().batch(0, step * M + i) for i in range(M)] for step in range(STEPS)]
    before, after = train(exported._replace(meta=meta), steps)
    assert_close(after, trained_by_tensorflow(kind, before, steps, resource))
    assert after["global_step"] == STEPS
    trained = [each.variable for each in report.trained]
    assert [name for name in trained if np.array_equal(after[name], before[name])] == []
    return report


@pytest.mark.long
def test_wide_and_deep():
    report = check(models.WideAndDeep)
    kinds = {(each.variable, each.kind) for each in report.trained}
    assert {("wide/weights", "sparse"), ("deep/table", "sparse")} <= kinds


@pytest.mark.long
def test_attention_over_a_history():
    report = check(models.DeepInterest)
    assert any("share the fate of their batch: dice" in change for change in report.changes)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.long
def test_batch_norms_that_a_placeholder_switches(version):
    with control_flow(version):
        report = check(models.SwitchedResNet, resource=version == 2)
    assert any("3 BatchNorms share the fate" in change for change in report.changes)


def test_an_export_may_leave_out_the_defaults_of_the_attributes():
    meta = export(models.ResNet).meta
    _, whole = graph_rewrite.semi_synchronize(meta, M)
    strip_graph_default_valued_attrs(meta)
    _, stripped = graph_rewrite.semi_synchronize(meta, M)
    assert any("3 BatchNorms share the fate" in change for change in whole.changes)
    assert (stripped.changes, stripped.warnings) == (whole.changes, whole.warnings)


@pytest.mark.few(1)
def test_slim():
    if zoo.TF2:
        skip_without("contrib", "tf.contrib ended with TensorFlow 1")
    report = check(models.Slim)
    assert any("2 BatchNorms share the fate" in change for change in report.changes)
