"""A build request: options, gradients, the batch's further payload; and its result."""

from typing import Any, List, NamedTuple

from graph_rewrite.edit.detach import disconnect
from semisync.aggregate import batch_norm as moving_statistics
from semisync.aggregate import updates as shared
from semisync.common.compat import tf
from semisync.handles import Handles
from semisync.options import Options
from semisync.transport.payload import StackedTensors
from semisync.wrapped import behind, siblings, turns


class Extras:
    """A batch's payload besides gradients.

    Attributes:
        items: list of `StackedTensors`.
        replaced: names of the ops of the graph whose work the chief does instead, a list.
    """

    def __init__(self):
        self.items: List[StackedTensors] = []
        self.replaced: List[str] = []

    def add(self, tensors, device, update):
        """See `GlobalBatchOptimizer.aggregate`."""
        self.items.append(StackedTensors(tensors, device, update))

    def add_batch_norms(self, batch_norms, how):
        """Adds the moving statistics of `BatchNorm`s; `how` is the option `batch_norm`."""
        once = how == "aggregate-once"
        with tf.control_dependencies(None):
            self.replaced += moving_statistics.aggregate(batch_norms, self.add, once)

    def add_updates(self, updates):
        """Adds a list of `shared.Shared`."""
        with tf.control_dependencies(None):
            self.replaced += shared.aggregate(updates, self.add)


class Request(NamedTuple):
    """The request to build a graph's part.

    Attributes:
        options: the `Options`.
        optimizer: the `WrappedOptimizer`, or its stand-in.
        pairs: (gradient, variable) of all variables.
        extras: the `Extras`.
        add_updates: function (`Extras`) that adds BatchNorm's statistics and the shared updates.
        global_step: the variable that counts global batches, or None, see `apply_gradients`.
        name: of the scope of the ops, or None.
    """

    options: Options
    optimizer: Any
    pairs: List[Any]
    extras: Extras
    add_updates: Any
    global_step: Any = None
    name: Any = None


class Built(NamedTuple):
    """The ops that were built.

    Attributes:
        train_op: of the worker.
        handles: the `Handles`.
        aggregated_gradients: the global batch's, a list of (gradient, variable).
        sole_counter: the `SoleCounter` of a global step that the job counts itself, or None.
    """

    train_op: Any
    handles: Handles
    aggregated_gradients: List[Any]
    sole_counter: Any


class InGraph:
    """One optimizer's state in one graph: its `extras`, and the `built`, None before."""

    def __init__(self):
        self.extras = Extras()
        self.built: Any = None
        self._ready = False

    def make_ready(self):
        """Restricts the chief's ops to the chief in the default graph, which is complete.

        Returns:
            The `Turns` of the optimizer, or None.

        Raises:
            UsageError: an op would write a trained variable with every batch.
        """
        number = self.built.handles.number
        if not self._ready:
            self._ready = True
            if self.extras.replaced:
                disconnect(tf.get_default_graph(), self.extras.replaced)
            if self.built.sole_counter:
                self.built.sole_counter.enforce()
            own = next(one for one in siblings.built() if one.number == number)
            behind.move(own, siblings.built())
        return turns.of(number)
