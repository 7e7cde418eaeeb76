"""Stand-ins for a wrapped optimizer, where the graph has its training ops already.

The library builds all its ops but the training, since the graph has the chief's step. So it wraps
no optimizer, but the graph's updates: it records which tensor of the global batch goes into which
input of theirs, and the MetaGraph is edited accordingly.
"""

from semisync.common.compat import tf
from semisync.common.errors import BadInput
from semisync.common.tensor_names import in_session
from semisync.wrapped.global_step import count
from semisync.wrapped.hyperparameters import of_known_shape


class ExistingVariable:
    """A `TrainedVariable` with those attributes of a tf.Variable that the library uses.

    Args:
        graph: the tf.Graph.
        trained: the `TrainedVariable`.
    """

    def __init__(self, graph, trained):
        self.trained = trained
        self.op = graph.get_operation_by_name(trained.node.name)
        self.name = self.op.name + ":0"
        self.device = self.op.device
        self.dtype = tf.as_dtype(trained.node.attr["dtype"].type)
        self.shape = tf.TensorShape(trained.node.attr["shape"].shape)
        if not self.shape.is_fully_defined():
            raise BadInput(
                "the variable {} has the shape {}: semi-synchronous training needs a variable of "
                "known shape".format(self.op.name, self.shape)
            )

    def gradient(self):
        """The batch's gradient of the variable: a Tensor of its shape, or IndexedSlices of rows."""
        values = self._tensor(self.trained.values)
        if self.trained.indices is None:
            self._check(values.shape, self.shape)
            return values
        row = tf.TensorShape([None]).concatenate(self.shape[1:])
        self._check(values.shape, row)
        return tf.IndexedSlices(values, self._tensor(self.trained.indices))

    def _tensor(self, name):
        return self.op.graph.get_tensor_by_name(in_session(name))

    def _check(self, shape, expected):
        if not shape.is_compatible_with(expected):
            raise BadInput(
                "the gradient {} of {} has the shape {} instead of {}".format(
                    self.trained.values, self.op.name, shape, expected
                )
            )


class ExistingStep:
    """Stands in for `semisync.wrapped.optimizer.WrappedOptimizer`, and for its `Hyperparameters`.

    Args:
        last: the ops by which the chief's step ends.
        counts: whether these count the global step.
        per_batch: the names of the ops whose values go with each batch.
        unfed: names of the tensors that the step is computed from and that go with no batch.
        at_once: the ops by which a worker trains "async" variables.

    Attributes:
        put: {GradientInput: the name of its new tensor}.
        brought: {op of `per_batch`: the name of the tensor that replaces its value}.
    """

    def __init__(self, last, counts, per_batch, unfed, at_once):
        self._last, self._counts, self._per_batch = last, counts, per_batch
        self._at_once = at_once
        self.unfed = unfed
        self.put, self.brought = {}, {}

    def apply_global_batch(self, pairs, global_step, after):
        """See WrappedOptimizer: the step is the graph's own."""
        for gradient, variable in pairs:
            for taken in variable.trained.inputs:
                # IndexedSlices have `values` and `indices`; a dense gradient is the tensor itself.
                self.put[taken] = getattr(gradient, taken.part, gradient).name
        # Nothing waits for `after`: the batches' other updates are applied beside the step.
        if self._counts:
            return tf.group(*self._last), self, True, []
        with tf.control_dependencies(self._last), tf.device(global_step.device):
            return tf.group(count(global_step)), self, True, []

    def tensors(self):
        """See Hyperparameters."""
        graph = tf.get_default_graph()
        return [of_known_shape(graph.get_tensor_by_name(name + ":0")) for name in self._per_batch]

    def replace(self, tensors):
        """See Hyperparameters."""
        self.brought = {name: tensor.name for name, tensor in zip(self._per_batch, tensors)}

    def own_numbers(self):
        """See WrappedOptimizer: every process imports the same."""
        return {}

    def apply_batch(self, pairs):
        """See WrappedOptimizer: the ops that train "async" variables stay as they were.

        The batch is reported to the chief after it, since a step of the chief may change variables
        that it reads, such as Adam's beta powers.
        """
        return self._at_once
