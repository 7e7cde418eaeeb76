"""safe_embedding_lookup_sparse, which every categorical feature column ends in, as one look-up.

    indices, ids, shape      a SparseTensor of ids, of any rank
    SparseReshape            all axes but the last one become rows
    Gather(.., ids >= 0)     negative ids are left out
    Gather(.., weights > 0)  ids without a positive weight are left out, unless they are summed
    SparseFillEmptyRows      a row without ids gets the id 0, or another one, of weight 1
    SparseSegmentSum, ...    the look-up, `lookups.find_bags`
    Select(empty, 0, found)  whose row is 0 again, unless there is a default id
    Reshape                  rows become all axes but the last one again

A step of any other form stays as it is in the graph, with all steps before it.
Source: tensorflow/python/ops/embedding_ops.py and feature_column/feature_column_v2.py
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from graph_rewrite.graph.ops import GATHER
from migrate.graph.attributes import integer, output_shape
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.dense_columns import find_whole_column
from migrate.model.layers.layer import Subject

_SELECTS = {"Select", "SelectV2"}
_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class SparseIds(NamedTuple):
    """The SparseTensor that a look-up is given.

    Attributes:
        indices: None: the ids are those of a dense feature.
        shape: for a dense feature the shape of `there`, or of the ids.
        filled: the node that fills its empty rows.
        shapes: the tensors with its shape before one of the reshapes.
        default: the id of a row without ids; None: its row is 0.
        weights: of the ids.
        positive: whether ids without a positive weight are left out.
        there: the mask of the values of a dense feature that become ids; None: all.
    """

    indices: Optional[Edge]
    ids: Edge
    shape: Edge
    filled: Node
    shapes: Tuple[Edge, ...] = ()
    default: Optional[int] = None
    weights: Optional[Edge] = None
    positive: bool = False
    there: Optional[Edge] = None

    @property
    def inputs(self) -> Tuple[Edge, ...]:
        """The tensors that it is made from."""
        if self.indices is None:
            edges: Tuple[Optional[Edge], ...] = (self.ids, self.there, self.weights)
        else:
            edges = (self.indices, self.ids, self.shape, self.weights)
        return tuple(edge for edge in edges if edge is not None)


def find_sparse_ids(
    subject: Subject, ids: Edge, segments: Edge, weights: Optional[Edge]
) -> Optional[SparseIds]:
    """The source of the bags' ids, segments and weights, if it is the steps above."""
    filled = _filled(subject, ids)
    default = None if filled is None else subject.constant(filled.inputs[3])
    if filled is None or default is None or not _is_row(subject, segments, filled):
        return None
    given = list(filled.inputs[:2])
    if weights is not None:
        filled_weights = _filled(subject, weights)
        if filled_weights is None or not _is(subject, filled_weights.inputs[3], [1]):
            return None
        given += [filled_weights.inputs[1], filled_weights.inputs[0]]
    positive = False
    # Upstream from the fill: the filter on weights, if any, then the one on ids.
    while True:
        gathered = [_gathered(subject, edge) for edge in given]
        found = [one for one in gathered if one is not None]
        if len(found) < len(given) or len({condition for _, condition in found}) != 1:
            return None
        condition, given = found[0][1], [source for source, _ in found]
        if _is_negative_left_out(subject, condition, *given[1:3]):
            break
        if positive or len(given) == 2 or not _is_above_0(subject, condition, given[2]):
            return None
        positive = True
    indices, kept, *weighted = given
    # Weights at other indices belong to other ids.
    if weighted and subject.beyond(weighted[1]) != subject.beyond(indices):
        return None
    more = weighted[0] if weighted else None
    shape, number = filled.inputs[2], int(default.reshape(()))
    found_ids = SparseIds(indices, kept, shape, filled, (), number, more, positive)
    return _of_dense(subject, _before_reshapes(subject, found_ids))


def _of_dense(subject: Subject, found: SparseIds) -> SparseIds:
    """The SparseIds of a dense feature, if `found` was made from one; else `found`."""
    assert found.indices is not None, found
    x = find_whole_column(subject, found.indices, found.ids)
    if x is not None and found.weights is None:
        return found._replace(indices=None, ids=x)
    where, shape = subject.node(found.indices), subject.node(_uncast(subject, found.shape))
    differs = subject.node(where.inputs[0]) if where.op == "Where" else where
    if differs.op != "NotEqual" or shape.op != "Shape":
        return found
    same = subject.beyond(differs.inputs[0]) == subject.beyond(shape.inputs[0])
    return found._replace(indices=None, there=where.inputs[0]) if same else found


def _filled(subject: Subject, values: Edge) -> Optional[Node]:
    """The SparseFillEmptyRows that returns `values`; None if another op does."""
    name, output = subject.beyond(values)
    node = subject.graph.nodes[name]
    return node if node.op == "SparseFillEmptyRows" and output == 1 else None


def find_end(
    subject: Subject, bags: Node, sparse: SparseIds, users: Dict[str, List[Node]]
) -> Optional[Tuple[str, SparseIds]]:
    """The node at which the result has all its axes, and rows without ids are 0 unless they have a
    default id; with `sparse`, updated. None where `bags` is used otherwise.

    Args:
        users: by node, the nodes that need it.
    """
    end, own = bags, users.get(bags.name, [])
    selects = [node for node in own if node.op in _SELECTS]
    if selects:
        end = selects[0]
        if len(selects) > 1 or not _is_zero_where_empty(subject, end, bags, sparse):
            return None
        # Besides the Select only its own parts may read the bags: the zeros, and the shape of its
        # Tile.
        if {node.op for node in own if node is not end} - {"Shape", "ZerosLike"}:
            return None
        sparse = sparse._replace(default=None)
    after = users.get(end.name, [])
    views = [node for node in after if node.op == "Reshape"]
    others = {node.op for node in after if node.op != "Reshape"}
    if len(views) == 1 and others <= {"Shape"} and _is_rows(subject, views[0], end, sparse):
        end = views[0]
    return end.name, sparse


def _is_zero_where_empty(subject: Subject, end: Node, bags: Node, sparse: SparseIds) -> bool:
    tile, zeros = subject.node(end.inputs[0]), subject.node(end.inputs[1])
    # Without a default id TensorFlow fills empty rows with the id 0, and discards its row here.
    if sparse.default != 0 or end.inputs[2] != (bags.name, 0):
        return False
    if tile.op != "Tile" or zeros.op != "ZerosLike" or zeros.inputs[0] != (bags.name, 0):
        return False
    view = subject.node(tile.inputs[0])
    return view.op == "Reshape" and subject.beyond(view.inputs[0]) == (sparse.filled.name, 2)


def _is_rows(subject: Subject, view: Node, end: Node, sparse: SparseIds) -> bool:
    """Whether a Reshape of the rows keeps their shape, that of a matrix."""
    shape = subject.node(view.inputs[1])
    if subject.beyond(view.inputs[0]) != (end.name, 0) or shape.op not in ("Concat", "ConcatV2"):
        return False
    parts = shape.inputs[:-1] if shape.op == "ConcatV2" else shape.inputs[1:]
    if len(parts) != 2:
        return False
    rows, dim = (subject.node(part) for part in parts)
    return (
        rows.op == dim.op == "Slice"
        and _uncast(subject, rows.inputs[0]) in sparse.shapes
        and _is(subject, rows.inputs[1], [0])
        and _is(subject, rows.inputs[2], [1])
        and subject.node(dim.inputs[0]).op == "Shape"
        and subject.beyond(subject.node(dim.inputs[0]).inputs[0]) == (end.name, 0)
        and _is(subject, dim.inputs[1], [1])
        and _is(subject, dim.inputs[2], [-1])
    )


def _is_row(subject: Subject, segments: Edge, filled: Node) -> bool:
    """Whether the segments are column 0 of the indices."""
    column = subject.graph.nodes[_uncast(subject, segments)[0]]
    if column.op != "StridedSlice" or subject.beyond(column.inputs[0]) != (filled.name, 0):
        return False
    masks = [integer(subject.graph, column, name) for name in _MASKS]
    bounds = [
        _is(subject, edge, given) for edge, given in zip(column.inputs[1:4:2], ([0, 0], [1, 1]))
    ]
    # The masks of x[:, 0]; with them the slice's end has no effect.
    return all(bounds) and masks == [1, 1, 0, 0, 2]


def _gathered(subject: Subject, edge: Edge) -> Optional[Tuple[Edge, str]]:
    """(x, condition) of x gathered where the node `condition` is true."""
    gather = subject.node(edge)
    if gather.op not in GATHER or (
        len(gather.inputs) > 2 and not _is(subject, gather.inputs[2], [0])
    ):
        return None
    where = subject.graph.nodes[subject.past(gather.inputs[1], "Reshape")[0]]
    if where.op != "Where":
        return None
    return gather.inputs[0], subject.node(where.inputs[0]).name


def _is_negative_left_out(
    subject: Subject, name: str, ids: Edge, weights: Optional[Edge] = None
) -> bool:
    """Whether a condition is ids >= 0, possibly ANDed with a True per weight."""
    condition = subject.graph.nodes[name]
    if condition.op == "LogicalAnd" and weights is not None:
        for one, other in (condition.inputs, condition.inputs[::-1]):
            if _is_true_for_each(subject, other, weights):
                condition = subject.node(one)
    return condition.op == "GreaterEqual" and _compares(subject, condition, ids)


def _is_above_0(subject: Subject, name: str, weights: Edge) -> bool:
    condition = subject.graph.nodes[name]
    return condition.op == "Greater" and _compares(subject, condition, weights)


def _compares(subject: Subject, condition: Node, x: Edge) -> bool:
    """Whether a condition compares x with 0."""
    same = subject.beyond(condition.inputs[0]) == subject.beyond(x)
    return same and _is(subject, condition.inputs[1], [0])


def _is_true_for_each(subject: Subject, edge: Edge, x: Edge) -> bool:
    fill = subject.node(edge)
    shape = subject.node(fill.inputs[0]) if fill.op == "Fill" else fill
    return (
        shape.op == "Shape"
        and subject.beyond(shape.inputs[0]) == subject.beyond(x)
        and _is(subject, fill.inputs[1], [True])
    )


def _before_reshapes(subject: Subject, found: SparseIds) -> SparseIds:
    """The SparseTensor before its leading axes became rows, and before it was made a matrix."""
    while True:
        node = subject.node(found.shape)
        edges = (node.name, 0), (node.name, 1)
        if node.op != "SparseReshape":
            return found
        assert found.indices is not None, found
        if (subject.beyond(found.indices), subject.beyond(found.shape)) != edges:
            return found
        before = node.inputs[1]
        if not _is_flat(subject, node.inputs[2], before) and not _is_same(
            subject, node.inputs[2], before
        ):
            return found
        # The result is reshaped back by one of these, see `_is_rows`.
        shapes = (*found.shapes, _uncast(subject, before))
        found = found._replace(indices=node.inputs[0], shape=before, shapes=shapes)


def _is_flat(subject: Subject, shape: Edge, before: Edge) -> bool:
    """Whether `shape` is [the product of all sizes but the last one, the last one]."""
    parts = _parts(subject, shape)
    if len(parts) != 2:
        return False
    product, last = parts
    sizes = subject.node(product.inputs[0]) if product.op == "Prod" else product
    if sizes.op != "Slice" or last.op not in GATHER:
        return False
    place = subject.constant(last.inputs[1])
    return (
        place is not None
        and _uncast(subject, sizes.inputs[0]) == _uncast(subject, before)
        and _uncast(subject, last.inputs[0]) == _uncast(subject, before)
        and _is(subject, sizes.inputs[1], [0])
        and _is(subject, sizes.inputs[2], [int(place)])
    )


def _is_same(subject: Subject, shape: Edge, before: Edge) -> bool:
    """Whether `shape` is [the number of rows, -1], of a matrix."""
    parts = _parts(subject, shape)
    if len(parts) != 2 or not _is_matrix(subject, before):
        return False
    rows, rest = parts
    known = subject.constant((rest.name, 0))
    return (
        rows.op == "StridedSlice"
        and _uncast(subject, rows.inputs[0]) == _uncast(subject, before)
        and [_is(subject, edge, [one]) for edge, one in zip(rows.inputs[1:], (0, 1, 1))]
        == [True] * 3
        and integer(subject.graph, rows, "shrink_axis_mask") == 1
        and known is not None
        and known.reshape(-1).tolist() == [-1]
    )


def _is_matrix(subject: Subject, shape: Edge) -> bool:
    """Whether a SparseTensor of this shape has two axes according to the graph."""
    name, output = _uncast(subject, shape)
    node = subject.graph.nodes[name]
    # Crossed columns are a matrix by definition; the graph may not state the shape.
    if node.op == "SparseCross":
        return True
    told = output_shape(subject.graph, node, output)
    if node.op == "Shape" and told is None:
        whole = output_shape(subject.graph, subject.node(node.inputs[0]), node.inputs[0][1])
        return whole is not None and len(whole) == 2
    return told == (2,)


def _parts(subject: Subject, packed: Edge) -> Sequence[Node]:
    """The nodes of the numbers that are packed into a vector."""
    node = subject.graph.nodes[_uncast(subject, packed)[0]]
    edges = node.inputs if node.op == "Pack" else ()
    return [subject.graph.nodes[_uncast(subject, edge)[0]] for edge in edges]


def _uncast(subject: Subject, edge: Edge) -> Edge:
    return subject.past(edge, "Cast")


def _is(subject: Subject, edge: Edge, values: List[int]) -> bool:
    found = subject.constant(edge)
    return found is not None and found.reshape(-1).tolist() == values
