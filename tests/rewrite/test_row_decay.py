"""Optimizers that decay the rows a batch touches, as contrib.opt's MomentumW and AdamW do."""

import pytest

from semisync.common.compat import tf
from tests.rewrite.exported import export, rewrite, train
from tests.wrap.one_process import assert_close, on_unions

pytestmark = pytest.mark.one_tensorflow

DECAY = 0.1


class Decayed:
    """Decays a variable's rows, each once, before it applies their gradients."""

    def _apply_sparse(self, grad, var):
        with tf.control_dependencies([self._decay(var, grad.indices)]):
            return super()._apply_sparse(grad, var)

    def _resource_apply_sparse(self, grad, handle, indices):
        with tf.control_dependencies([self._decay(handle, indices)]):
            return super()._resource_apply_sparse(grad, handle, indices)

    def _decay(self, var, rows):
        return tf.scatter_add(var, rows, -DECAY * tf.gather(var, rows))


class Momentum(Decayed, tf.train.MomentumOptimizer):
    pass


class Adam(Decayed, tf.train.AdamOptimizer):
    pass


@pytest.mark.parametrize(
    "kind, options, resource",
    [(Momentum, {"momentum": 0.9}, False), (Momentum, {"momentum": 0.9}, True), (Adam, {}, False)],
)
@pytest.mark.long
def test_the_rows_of_a_global_batch_decay_once(kind, options, resource):
    def build(model, wrap):
        optimizer = wrap(kind(0.1, **options))
        pairs = optimizer.compute_gradients(model.loss())
        gradients = [getattr(g, "values", g) for g, _ in pairs if g is not None]
        with tf.control_dependencies(gradients):  # the plain job must not read decayed rows
            return optimizer.apply_gradients(pairs, global_step=model.step)

    before, after, _ = train(rewrite(export(build, resource), paced=True))
    assert_close(after, on_unions(build, before, resource))
