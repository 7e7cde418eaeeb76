"""GlobalBatchOptimizer around training ops that a graph already has.

The library builds its own ops, all but the training: that of the chief's step is there. So what it
wraps is no optimizer, but the updates that were found; it gives them the global batch's gradients
by noting which tensor goes to which place, for the MetaGraph to be edited by.
"""

from semisync.common.compat import tf
from semisync.common.errors import BadInput
from semisync.optimizer import GlobalBatchOptimizer
from semisync.wrapped.global_step import count
from semisync.wrapped.hyperparameters import of_known_shape


class TrainedVariable:
    """What the library asks of a variable, for one `Update`.

    Args:
      graph: the tf.Graph.
      update: the `Update`.
    """

    def __init__(self, graph, update):
        self.update = update
        self.op = graph.get_operation_by_name(update.variable.name)
        self.name = self.op.name + ":0"
        self.device = self.op.device
        self.dtype = tf.as_dtype(update.variable.attr["dtype"].type)
        self.shape = tf.TensorShape(update.variable.attr["shape"].shape)
        if not self.shape.is_fully_defined():
            raise BadInput(
                "the variable {} has the shape {}: semi-synchronous training needs to know it "
                "whole".format(self.op.name, self.shape)
            )

    def gradient(self):
        """The batch's, of the shape of the variable."""
        values = self._tensor(self.update.values)
        if self.update.indices is None:
            self._check(values.shape, self.shape)
            return values
        row = tf.TensorShape([None]).concatenate(self.shape[1:])
        self._check(values.shape, row)
        return tf.IndexedSlices(values, self._tensor(self.update.indices))

    def _tensor(self, name):
        return self.op.graph.get_tensor_by_name(name if ":" in name else name + ":0")

    def _check(self, found, expected):
        if not found.is_compatible_with(expected):
            raise BadInput(
                "the gradient {} of {} has the shape {} instead of {}".format(
                    self.update.values, self.op.name, found, expected
                )
            )


class ExistingStep:
    """Stands for `semisync.wrapped.optimizer.Wrapped`.

    Args:
      last: the ops by which the chief's step ends.
      counts: whether these count the global step.
      carried, unfed: `TrainingGraph.hyperparameters` and `.unfed`; it stands for the
        `Hyperparameters` of its step, too.

    Attributes:
      put: {Place: the name of the tensor that is to go there}.
      brought: {name of an op of `carried`: the name of the tensor that is to take its place}.
    """

    def __init__(self, last, counts, carried, unfed):
        self._last, self._counts = last, counts
        self.carried, self.unfed = carried, unfed
        self.put, self.brought = {}, {}

    def apply_global_batch(self, pairs, global_step, after):
        """See Wrapped: the step is the graph's own."""
        for gradient, variable in pairs:
            for place in variable.update.places:
                self.put[place] = getattr(gradient, place.what, gradient).name
        # Nothing waits for `after`: what is carried along is applied beside the step.
        if self._counts:
            return tf.group(*self._last), self
        with tf.control_dependencies(self._last), tf.device(global_step.device):
            return tf.group(count(global_step)), self

    def tensors(self):
        """See Hyperparameters."""
        graph = tf.get_default_graph()
        return [of_known_shape(graph.get_tensor_by_name(name + ":0")) for name in self.carried]

    def replace(self, tensors):
        """See Hyperparameters."""
        self.brought = {name: tensor.name for name, tensor in zip(self.carried, tensors)}

    def own_numbers(self):
        """See Wrapped: every process imports the same."""
        return {}

    def apply_batch(self, pairs):
        """See Wrapped: what trains "async" variables stays where it was."""
        return []


class ExistingOptimizer(GlobalBatchOptimizer):
    """A `GlobalBatchOptimizer` of an `ExistingStep`.

    Args:
      step: the `ExistingStep`.
      batch_norms: of the graph, see `find_batch_norms`.
      shared_updates: of the graph, see `shared_updates.find`.
      options: of GlobalBatchOptimizer.
    """

    def __init__(self, step, batch_norms, shared_updates, batches_per_step, **options):
        super().__init__(tf.train.GradientDescentOptimizer(0.0), batches_per_step, **options)
        self._wrapped = step
        self._found = batch_norms, shared_updates

    def _batch_norms(self):
        return self._found[0]

    def _found_updates(self, replaced):
        return self._found[1]
