"""The gradient of each variable as tf.gradients returns it, before anything changes it.

1. Ops between tf.gradients and a training op, such as clipping by norm, are outside of the scope
   of tf.gradients (`gradient_scopes`).
2. The gradient of a variable is the tensor of such a scope that its training op's gradient comes
   from without a reduction on the way: with clip_by_global_norm it comes from all gradients, but
   from the others through their norm alone.
3. A gradient of a table is IndexedSlices, two tensors. They are made unique before the training op,
   UnsortedSegmentSum(values, Unique(indices):1), which is outside of the scope too; only gradient
   descent does without. Where the training op takes a dense gradient, UnsortedSegmentSum(values,
   indices) makes it one. That is the gradient, unless the values were changed before it, as
   clip_by_global_norm does: then the gradient is the IndexedSlices.

Source: tensorflow/python/training/optimizer.py
"""

from __future__ import annotations

from typing import Iterable, List, NamedTuple, Optional, Set, Tuple

from migrate.graph.interface.gradient_scopes import GradientScopes
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.graph.updates import VariableUpdate
from migrate.graph.wrapped import STAGED, refuse_untold
from migrate.optimizers.gradient_descent import GRADIENT_DESCENT
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.common.tensor_names import of_edge

_REDUCTIONS = {
    "All", "Any", "ArgMax", "ArgMin", "EuclideanNorm", "L2Loss", "Max", "Mean", "Min", "Prod",
    "Rank", "Shape", "ShapeN", "Size", "Sum", "Unique", "UniqueV2", "UniqueWithCounts",
}  # fmt: skip
_FIRST_ALONE = {"Reshape", "UnsortedSegmentSum"}  # other inputs only place the values
_VIEWS = {"Identity", "Reshape"}


class Slices(NamedTuple):
    """The gradient of a variable from tf.gradients; without indices it is dense."""

    values: Edge
    indices: Optional[Edge]


def applied(update: VariableUpdate) -> Slices:
    """The gradient that the training op takes."""
    assert update.gradient is not None, update
    return Slices(update.gradient, update.indices)


def before_summing(graph: Graph, update: VariableUpdate) -> Optional[Slices]:
    """The rows that are applied, before repeated ones are summed; None: they are not summed."""
    values, indices = applied(update)
    total = graph.nodes[values[0]]
    if indices is None or total.op != "UnsortedSegmentSum":
        return None
    rows, positions = total.inputs[:2]
    unique = graph.nodes[positions[0]]
    known = unique.op in ("Unique", "UniqueV2") and positions == (unique.name, 1)
    return Slices(rows, unique.inputs[0]) if known and indices == (unique.name, 0) else None


class Gradients:
    """The gradients of updates."""

    def __init__(self, graph: Graph, scopes: GradientScopes) -> None:
        self._graph, self._scopes = graph, scopes

    def of(self, update: VariableUpdate) -> Slices:
        """The gradient of an update, before anything is applied to it.

        Raises:
            BadInput: it is not one tensor of tf.gradients.
        """
        if update.gradient is None:
            raise BadInput(
                f"{self._graph.path}: what the update {update.node!r} of {update.variable!r} takes "
                "for the gradient cannot be told"
            )
        summed = before_summing(self._graph, update)
        if update.by_id and summed is not None:
            parts = self._joined(summed.values)
            for part in parts:
                self._check_reads(update, part)
            if parts:
                return summed
        source = self._source(update, update.gradient, dense=update.indices is None)
        values = source.values
        self._check_reads(update, values)
        if update.indices is None:
            return source
        if update.by_id:
            ids = self._ids(update, update.indices) if summed is None else summed.indices
            return Slices(values, ids)
        descends = update.optimizer is GRADIENT_DESCENT
        if not descends and summed is None:
            raise BadInput(
                f"{self._graph.path}: {update.node!r} applies the rows of a batch to "
                f"{update.variable!r} one by one, also where a row repeats; TensorFlow's own "
                "optimizers sum those first, and so do those here: it cannot be carried over"
            )
        return Slices(values, self._source(update, update.indices, indices=True).values)

    def _joined(self, edge: Edge) -> List[Edge]:
        """The tensors of tf.gradients that `edge` concatenates, of several look-ups, or []."""
        found: List[Edge] = []
        pending, passed = [edge], set()
        while pending:
            one = pending.pop()
            node = self._graph.nodes[one[0]]
            if self._scopes.has(node.name):
                found.append(one)
                continue
            if one in passed or node.op not in {"ConcatV2", *_VIEWS}:
                return []
            passed.add(one)
            inputs = node.inputs[:-1] if node.op == "ConcatV2" else node.inputs[:1]
            pending += reversed(inputs)
        return found

    def _check_reads(self, update: VariableUpdate, values: Edge) -> None:
        """Raises BadInput if `values` is the gradient of another variable."""
        if not self._scopes.is_of(values, update.variable):
            readers = ", ".join(repr(node.name) for node in self._scopes.readers(values))
            raise BadInput(
                f"{self._graph.path}: {update.node!r} applies to {update.variable!r} the gradient "
                f"of what {readers} reads, which is another variable; that cannot be carried over"
            )

    def _ids(self, update: VariableUpdate, ids: Edge) -> Edge:
        """The ids of a look-up by raw id; raises BadInput if an id may repeat."""
        ids = self._graph.beyond(ids, _VIEWS)
        node = self._graph.nodes[ids[0]]
        if node.op not in ("Unique", "UniqueV2") or ids[1] != 0:
            raise BadInput(
                f"{self._graph.path}: the look-up whose rows {update.node!r} applies to "
                f"{update.variable!r} may have an id several times, and TFRA keeps the gradient of "
                "the last one alone: it cannot be carried over; have the job look up unique ids "
                "(embedding_lookup_unique), or give the MetaGraph of the job with its optimizer "
                "wrapped, which sums them"
            )
        return ids

    def _source(
        self, update: VariableUpdate, edge: Edge, indices: bool = False, dense: bool = False
    ) -> Slices:
        found, ends = self._sources(edge, indices, dense)
        if len(found) == 1:
            return found.pop()
        path, what = self._graph.path, f"the gradient that {update.node!r} applies"
        if found:
            several = some_of(sorted(of_edge(one.values) for one in found))
            raise BadInput(
                f"{path}: {what} to {update.variable!r} is made of several gradients, {several}; "
                "only one gradient per variable, of one loss, can be carried over"
            )
        if any(node.op == STAGED for node in ends):
            raise refuse_untold(path)
        others = some_of(f"{node.name!r} ({node.op})" for node in ends)
        raise BadInput(
            f"{path}: {what} to {update.variable!r} does not come from tf.gradients but from "
            f"{others or 'nothing that is known'}; such a gradient cannot be carried over"
        )

    def _sources(self, edge: Edge, indices: bool, dense: bool) -> Tuple[Set[Slices], List[Node]]:
        """The tensors of tf.gradients that `edge` comes from without reductions, and other ends.

        Args:
            indices: it is the indices of a table's gradient.
            dense: it may have been made from IndexedSlices, whose indices are then returned.
        """
        found: Set[Slices] = set()
        ends: List[Node] = []
        pending = [Slices(edge, None)]
        seen = set(pending)
        while pending:
            one = pending.pop()
            node = self._graph.nodes[one.values[0]]
            makes_dense = dense and node.op == "UnsortedSegmentSum"
            # A sum over indices that tf.gradients made turns IndexedSlices into a dense gradient.
            makes_dense = makes_dense and self._scopes.has(node.inputs[1][0])
            if self._scopes.has(node.name) or (makes_dense and self._scopes.has(node.inputs[0][0])):
                if node.op != "Const":
                    found.add(one)
                continue
            # The payload of a wrapped job: what tf.gradients returned is not in the graph.
            if node.op == STAGED:
                ends.append(node)
                continue
            # A norm depends on all gradients without being one of them.
            if node.op in _REDUCTIONS and not (indices and node.op.startswith("Unique")):
                continue
            inputs = node.inputs[:1] if node.op in _FIRST_ALONE or indices else node.inputs
            if not inputs and node.op != "Const":
                ends.append(node)
            for source in inputs:
                before = Slices(source, node.inputs[1] if makes_dense else one.indices)
                if before not in seen:
                    seen.add(before)
                    pending.append(before)
        return found, ends


def find_loss(graph: Graph, scopes: GradientScopes, gradients: Iterable[Slices]) -> Edge:
    """The loss whose gradients these are; raises BadInput if that is not one known tensor."""
    used = {scopes.scope_of(slices.values) for slices in gradients}
    losses = {scopes.loss(scope) for scope in sorted(used)}
    if len(losses) != 1:
        listed = ", ".join(sorted(of_edge(loss) for loss in losses))
        raise BadInput(
            f"{graph.path}: the variables are trained by several losses, {listed}; name the "
            "training op of one of them with train_op"
        )
    return losses.pop()
