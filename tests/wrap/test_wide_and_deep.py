"""Wide & Deep: two optimizers in one graph, each with its own variables, on one loss.

The reference is the same pair of plain optimizers on the union of the batches.
"""

import pytest

from semisync.common.compat import tf
from tests.wrap.one_process import STEPS, assert_equals_the_union


def wide_and_deep(second_step):
    """Ftrl trains the linear part, Adagrad the embedding and the kernel, in one train op."""

    def build(model, wrap):
        loss = model.loss()
        wide = wrap(tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.01)).minimize(
            loss, global_step=model.step, var_list=model.variables("bias")
        )
        deep = wrap(tf.train.AdagradOptimizer(0.1)).minimize(
            loss,
            global_step=model.step if second_step else None,
            var_list=model.variables("table", "kernel"),
        )
        return tf.group(wide, deep)

    return build


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.long
def test_the_pair_equals_the_plain_pair_on_the_union(resource):
    _, after = assert_equals_the_union(wide_and_deep(second_step=False), resource)
    assert after["global_step"] == STEPS


@pytest.mark.long
def test_both_may_count_the_global_step_as_the_plain_pair_does():
    _, after = assert_equals_the_union(wide_and_deep(second_step=True))
    assert after["global_step"] == 2 * STEPS
