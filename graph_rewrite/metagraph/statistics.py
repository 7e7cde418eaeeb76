"""Which BatchNorms have moving statistics that the chief moves.

These are the ones that the training moves as exported: their updates come before what trains, or
wait for it. Others may be frozen on purpose, or a job fetches their updates by name: they stay as
they are unless the caller says otherwise.
"""

from typing import Any, List, NamedTuple, Optional, Set

from graph_rewrite.batch_norm.find import of_view
from graph_rewrite.graph.functions import home, top
from graph_rewrite.graph.meta_graph import variables
from graph_rewrite.graph.op_traits import OpTraits
from graph_rewrite.graph.ops import ACCUMULATES
from graph_rewrite.patterns.variables import initialises
from semisync.common.compat import tf


class Statistics(NamedTuple):
    """The `BatchNorm`s of a graph, by how their moving statistics are kept.

    Attributes:
        moved: those that the chief moves, as the training does in the exported graph.
        unmoved: those that could be moved, but that no training moves.
        left: those that nothing can move but the worker.
        at_once: the names of the variables that every batch moves: those of `left`, or of all where
            the option says so; a set.
        move: whether the chief moves the unmoved, too; None where the caller did not say.
    """

    moved: List[Any]
    unmoved: List[Any]
    left: List[Any]
    at_once: Set[str]
    move: Optional[bool]

    @property
    def aggregated(self):
        """All whose statistics the chief moves, a list."""
        return self.moved + (self.unmoved if self.move else [])


def divide(meta, view, train_ops, option, move):
    """The `Statistics` of a MetaGraphDef.

    Args:
        meta: the MetaGraphDef.
        view: its `View`.
        train_ops: names of the ops by which training ends; none to find them in the graph.
        option: "async" leaves all to the workers, see `semisync.GlobalBatchOptimizer`.
        move: see `Statistics`.
    """
    found = of_view(view)
    statistics = Statistics([], [], [], set(), move)
    ran = _run_by_training(meta, view.nodes, train_ops) if found else set()
    for batch_norm in found:
        running = [update for update in batch_norm.updates if top(update.op) in ran]
        if option == "async" or not batch_norm.shareable:
            statistics.at_once.update(*[update.variables for update in running])
        if option == "async":
            continue
        if not batch_norm.shareable:
            statistics.left.append(batch_norm)
        else:
            (statistics.moved if running else statistics.unmoved).append(batch_norm)
    return statistics


def _run_by_training(meta, nodes, train_ops):
    """The names of the ops that run where the training does, a set."""
    ends = set(train_ops)
    if not ends:
        traits = OpTraits(nodes, meta.graph_def.library)
        trainable = set(variables(meta, tf.GraphKeys.TRAINABLE_VARIABLES))
        trains = [node.name for node in nodes if _trains(nodes, traits, trainable, node)]
        ends = nodes.descendants(trains).union(trains)
    return nodes.ancestors(ends)


def _trains(nodes, traits, trainable, node):
    """Whether a NodeDef changes a trainable variable, or collects a gradient for one."""
    if ACCUMULATES.match(node.op):
        return True
    variable = None if home(node.name) else traits.written(node.name)  # known at the top level
    return variable in trainable and not initialises(nodes, node, variable)
