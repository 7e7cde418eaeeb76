"""Optimizers that compute with a gradient before they apply it are refused, with what to do."""

import pytest

import graph_rewrite
from semisync.common.compat import tf
from semisync.common.errors import BadInput
from tests.rewrite.exported import export
from tests.wrap.one_process import M


class Rule(tf.train.Optimizer):
    """An optimizer whose rule is `_apply_dense`; sparse gradients are made dense."""

    def __init__(self, name):
        super().__init__(False, name)

    def _resource_apply_dense(self, grad, handle):
        return self._apply_dense(grad, handle)

    def _apply_sparse(self, grad, var):
        return self._apply_dense(tf.convert_to_tensor(grad), var)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._apply_sparse(tf.IndexedSlices(grad, indices, tf.shape(handle)), handle)


class Sign(Rule):
    def _apply_dense(self, grad, var):
        return tf.group(tf.assign_sub(var, 0.1 * tf.sign(grad)))


class Factored(Rule):
    """With slots of another shape than the variable's, as Adafactor's."""

    def _create_slots(self, var_list):
        zeros = tf.zeros_initializer()
        self._rows = {
            var.op.name: tf.get_variable(
                var.op.name + "/rows", var.shape[:1], initializer=zeros, trainable=False
            )
            for var in var_list
        }

    def _apply_dense(self, grad, var):
        slot = self._rows[var.op.name]
        squares = tf.reduce_sum(tf.square(grad), list(range(1, grad.shape.rank)))
        rows = tf.assign(slot, 0.9 * slot + squares)
        scale = tf.reshape(tf.math.rsqrt(rows + 0.1), [-1] + [1] * (grad.shape.rank - 1))
        return tf.group(tf.assign(var, var - 0.1 * scale * grad))


class Trust(tf.train.MomentumOptimizer):
    """What LARS does: the length of a variable's step is that of the variable."""

    def __init__(self, name):
        super().__init__(0.1, 0.9, name=name)

    def _ratio(self, grad, var):
        return tf.norm(var) / (tf.norm(grad) + 1)

    def _apply_dense(self, grad, var):
        return super()._apply_dense(grad * self._ratio(grad, var), var)

    def _resource_apply_dense(self, grad, var):
        return super()._resource_apply_dense(grad * self._ratio(grad, var), var)


@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
@pytest.mark.parametrize("rule", [Sign, Factored, Trust])
@pytest.mark.long
def test_the_rule_would_be_that_of_each_batch(rule, resource):
    def build(model, wrap):
        return rule("rule").minimize(model.loss(), global_step=model.step)

    with pytest.raises(BadInput) as error:
        graph_rewrite.semi_synchronize(export(build, resource).meta, M)
    assert "by what its optimizer computes with the gradient before it applies it" in str(
        error.value
    )
    assert "semisync.GlobalBatchOptimizer" in str(error.value)


@pytest.mark.few(1)
@pytest.mark.parametrize("resource", [False, True], ids=["ref", "resource"])
def test_what_the_job_computes_with_a_gradient_is_each_batchs_own(resource):
    """Such as clipping: it comes before the optimizer has the gradient."""

    def build(model, wrap):
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        pairs = optimizer.compute_gradients(model.loss(), model.variables("kernel", "bias"))
        clipped = [(tf.clip_by_norm(gradient, 0.1), variable) for gradient, variable in pairs]
        return optimizer.apply_gradients(clipped, global_step=model.step)

    _, report = graph_rewrite.semi_synchronize(export(build, resource).meta, M)
    assert "kernel" in [trained.variable for trained in report.trained]
