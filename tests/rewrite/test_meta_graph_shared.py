"""A rewritten MetaGraph in which updates such as a counter share the fate of their batch."""

import numpy as np
import pytest

from semisync import cli
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import STEPS, assert_close, in_batches, inputs

pytestmark = pytest.mark.one_tensorflow


def builder(resource=False):
    def build(model, wrap):
        """Counts the batches and adds up their targets, in front of the training."""
        with tf.variable_scope(tf.get_variable_scope(), use_resource=resource):
            count = tf.get_variable("count", initializer=0, trainable=False)
            total = tf.get_variable("total", initializer=0.0, trainable=False)
        counted = tf.assign_add(count, 1, name="counted")
        added = tf.assign_add(total, tf.reduce_sum(model.targets), name="added")
        with tf.control_dependencies([counted, added]):
            optimizer = wrap(tf.train.AdagradOptimizer(0.1))
            return optimizer.minimize(model.loss(), global_step=model.step)

    return build


@pytest.mark.parametrize("resource", [False, True])
@pytest.mark.parametrize("how", ["sum", "mean"])
@pytest.mark.long
def test_it_trains_what_the_wrapper_trains(how, resource):
    shared = [("^total", how), ("^count", "sum")]
    batches = [[targets.sum() for _, targets in inputs(step)] for step in range(STEPS)]
    together = getattr(np, how)(batches, axis=1)
    build = builder(resource)
    _, after, _ = train(rewrite(export(build, resource), paced=True, shared_updates=shared))
    np.testing.assert_allclose(after["total"], together.sum(), rtol=1e-5)
    assert after["count"] == np.size(batches)
    assert_close(after, in_batches(build, resource, shared_updates=shared)[1])


def test_each_batch_no_longer_makes_the_update():
    exported = rewrite(export(builder()), shared_updates=[("total", "sum")])
    taken = {name for node in exported.meta.graph_def.node for name in node.input}
    assert taken.isdisjoint(["added", "^added"])
    assert not taken.isdisjoint(["counted", "^counted"])


def test_the_command_takes_rules(tmp_path, capsys):
    path = tmp_path / "in.meta"
    path.write_bytes(export(builder()).meta.SerializeToString())
    arguments = ["rewrite", str(path), str(tmp_path / "out.meta"), "--batches-per-step", "3"]
    assert cli.main(arguments + ["--share", "total", "mean", "--share", "count", "sum"]) == 0
    told = "2 updates of variables share the fate of their batch: counted (sum), added (mean)"
    assert told in capsys.readouterr().out
    assert cli.main([*arguments, "--overwrite", "--share", "total", "most"]) == 3
    assert "'sum' or 'mean' or 'last', not 'most'" in " ".join(capsys.readouterr().err.split())


def test_a_rule_that_finds_nothing_is_refused():
    with pytest.raises(UsageError, match="no update of a variable that is not trained matches"):
        rewrite(export(builder()), shared_updates=[("counter", "sum")])
