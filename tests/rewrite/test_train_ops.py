"""Several train ops of different variables, as those of a GAN, are taken as one."""

import numpy as np
import pytest

import graph_rewrite
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.rewrite.exported import export, train
from tests.wrap.one_process import STEPS, M, assert_close, on_unions

OPS = ["generator", "critic"]


def build(model, wrap):
    """Two train ops; the first of them counts the global step."""
    loss = model.loss()
    parts = [("generator", model.step, ["kernel"]), ("critic", None, ["bias", "table"])]
    return tf.group(
        *[
            wrap(tf.train.AdagradOptimizer(0.1)).minimize(
                loss, global_step=step, var_list=model.variables(*names), name=name
            )
            for name, step, names in parts
        ]
    )


def exported():
    """The job whose worker fetches the two ops."""
    return export(build, resource=True)


@pytest.mark.long
def test_train_ops_that_are_named_together_train_together():
    job = exported()
    meta, report = graph_rewrite.semi_synchronize(job.meta, M, paced=True, train_op=OPS)
    before, after, ledger = train(job._replace(meta=meta, train=OPS[0]), fetch=OPS[1:])
    assert_close(after, on_unions(build, before, resource=True))
    assert after["global_step"] == STEPS
    assert ledger.fates["admitted"] == M * STEPS
    (warning,) = [each for each in report.warnings if "train together" in each]
    assert "generator and critic train together, each of them all 5 variables" in warning


@pytest.mark.long
def test_each_of_them_trains_all_variables():
    job = exported()
    meta, _ = graph_rewrite.semi_synchronize(job.meta, M, paced=True, train_op=OPS)
    for name in OPS:
        before, after, _ = train(job._replace(meta=meta, train=name))
        assert all(np.any(before[each] != after[each]) for each in ("kernel", "bias"))


@pytest.mark.long
def test_one_of_them_leaves_the_others_variables_alone():
    _, report = graph_rewrite.semi_synchronize(exported().meta, M, train_op=OPS[:1])
    assert [trained.variable for trained in report.trained] == ["kernel"]
    assert not any("train together" in each for each in report.warnings)


def test_each_named_op_must_train():
    with pytest.raises(BadInput, match="the op 'global_step' trains no variable"):
        graph_rewrite.semi_synchronize(exported().meta, M, train_op=[OPS[0], "global_step"])
