"""Categorical columns of dense features whose ids become vectors, without sparse tensors between.

    x != missing                                  of text "", of integers -1
    f(GatherNd(x, Where(x != missing)))           ids of the values that are there
    SparseToDense(Where, Shape(x), f(..), -1)     where(x != missing, f(x), -1)

This form is used if f is elementwise, of the chosen values, constants and tables, and ends in such
a SparseToDense; f is then computed for all values of x.

    Add(Reshape(x), n * Tile(Range(k)))           x + n * arange(k): a bucketized column's ids
    Cast(Transpose(Stack(rows, columns)))         the indices of a sparse tensor that lacks nothing

Source: _to_sparse_input_and_drop_ignore_values, IndicatorColumn and BucketizedColumn in
tensorflow/python/feature_column/feature_column_v2.py
"""

from __future__ import annotations

from typing import Callable, FrozenSet, List, NamedTuple, Optional

from graph_rewrite.graph.ops import PLUS
from migrate.graph.attributes import dtypes, integer
from migrate.graph.metagraph import Edge, Node
from migrate.model.layers.layer import SAME, Layer, Modules, Subject, asked_once
from migrate.model.layers.present import Present, present
from migrate.model.lookup_tables import SIZES, TABLES
from migrate.model.ops.values import Value, literal, torch_type
from migrate.model.parameters import Parameters

_ONE_BY_ONE = SAME | {
    "Add",
    "AddV2",
    "AsString",
    "Cast",
    "Fill",
    "FloorMod",
    "GreaterEqual",
    "Less",
    "LogicalOr",
    "LookupTableFind",
    "LookupTableFindV2",
    "NotEqual",
    "Select",
    "SelectV2",
    "StringToHashBucket",
    "StringToHashBucketFast",
    "StringToHashBucketStrong",
}
_INTEGERS = {"int32", "int64"}

Write = Callable[[Parameters, Modules, List[Value]], str]


class _Column(NamedTuple):
    """The nodes between the values of a feature and the vectors.

    Attributes:
        casts: whether they are integers that are only cast to other integers.
    """

    chosen: Present
    inside: FrozenSet[str]
    ends: FrozenSet[str]
    casts: bool


def find_dense_column(subject: Subject, node: Node) -> Optional[Layer]:
    """The part of such a column that ends at `node`."""
    if node.op == "GatherNd":
        column = _column(subject, node.name)
        if column is None:
            return None
        # The nodes inside have values for all of x, so that they differ from the graph's.
        return Layer((column.chosen.x,), _first, same=True, inside=column.inside)
    return _dense(subject, node) if node.op == "SparseToDense" else None


def find_bucketized(subject: Subject, node: Node) -> Optional[Layer]:
    """The ids of a bucketized column, or their indices, at `node`."""
    if node.op in PLUS and len(node.inputs) == 2:
        return _offset(subject, node)
    return _places(subject, node) if node.op == "Cast" else None


def find_whole_column(subject: Subject, indices: Edge, ids: Edge) -> Optional[Edge]:
    """The bucketized column of one value per row all of whose ids are in a sparse tensor."""
    x = _placed(subject, subject.node(indices))
    added = subject.node(ids)
    same = _offset(subject, added) if added.op in PLUS else None
    flat = subject.node(ids if same is None or not same.same else same.inputs[0])
    if x is None or _width(subject, x) != 1 or flat.op != "Reshape":
        return None
    return x if subject.beyond(flat.inputs[0]) == x else None


def _first(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
    return values[0].text


def _dense(subject: Subject, node: Node) -> Optional[Layer]:
    where = subject.node(node.inputs[0])
    gathers = [user for user in subject.users(where) if user.op == "GatherNd"]
    columns = (_column(subject, gather.name) for gather in gathers)
    column = next((one for one in columns if one is not None and node.name in one.ends), None)
    default = subject.constant(node.inputs[3])
    if column is None or default is None:
        return None
    missing = column.chosen.missing
    # Only cast, x keeps `missing` where a value is missing, which is the default: no choice is
    # left.
    if column.casts and missing == default:
        return Layer((node.inputs[2],), _first, same=True)

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"torch.where({values[0].tensor}, {values[1].tensor}, {literal(default)})"

    return Layer((column.chosen.mask, node.inputs[2]), write, static=missing.dtype != object)


@asked_once
def _column(subject: Subject, name: str) -> Optional[_Column]:
    """The column computed from the values that a GatherNd chooses; None if they are used
    otherwise."""
    gather = subject.graph.nodes[name]
    chosen = present(subject, gather)
    if chosen is None:
        return None
    # From the chosen values on every user must be elementwise, up to a SparseToDense.
    inside, ends, pending = {gather.name}, set(), [gather]
    casts = True
    while pending:
        for user in subject.users(pending.pop()):
            if user.op == "SparseToDense":
                if not _is_of(subject, user, chosen):
                    return None
                ends.add(user.name)
            elif user.name not in inside:
                if user.op not in _ONE_BY_ONE and not _is_filled(subject, user):
                    return None
                types = [dtypes(subject.graph, user, name) for name in ("SrcT", "DstT")]
                is_cast = user.op == "Cast" and _INTEGERS.issuperset(types[0] + types[1])
                casts = casts and (is_cast or user.op in SAME)
                inside.add(user.name)
                pending.append(user)
    edges = {
        edge
        for name in inside - {gather.name}
        for edge in subject.graph.nodes[name].inputs
        if subject.beyond(edge)[0] not in inside
    }
    defaults = [subject.constant(subject.graph.nodes[end].inputs[3]) for end in ends]
    texts = [one for one in defaults if one is not None and one.dtype == object]
    # Any other text default would count as a present value.
    if texts and not (casts and all(one == chosen.missing for one in texts)):
        return None
    # f is computed for all of x: an operand with a value per chosen element would not fit.
    if inside & subject.outputs or not all(_is_known(subject, edge) for edge in edges):
        return None
    return _Column(chosen, frozenset(inside), frozenset(ends), casts)


def _is_of(subject: Subject, node: Node, chosen: Present) -> bool:
    """Whether a SparseToDense puts values where `chosen` took them from."""
    default = subject.constant(node.inputs[3])
    shape = subject.graph.nodes[subject.past(node.inputs[1], "Cast")[0]]
    return (
        subject.node(node.inputs[0]).name == chosen.where
        and shape.op == "Shape"
        and subject.beyond(shape.inputs[0]) == chosen.x
        and default is not None
        and not default.ndim
    )


def _is_filled(subject: Subject, node: Node) -> bool:
    """Whether a node is a Shape that only Fill reads."""
    return node.op == "Shape" and all(user.op == "Fill" for user in subject.users(node))


def _is_known(subject: Subject, edge: Edge) -> bool:
    """Whether an operand is the same for every element: a scalar constant or a table."""
    value = subject.constant(edge)
    table = subject.node(edge).op in {*TABLES, *SIZES}
    return table or (value is not None and not value.ndim)


def _offset(subject: Subject, node: Node) -> Optional[Layer]:
    """x + n * arange(k), where a row of x has k values."""
    for values, product in (node.inputs, node.inputs[::-1]):
        flat, times = subject.node(values), subject.node(product)
        if flat.op != "Reshape" or times.op != "Mul":
            continue
        x = subject.beyond(flat.inputs[0])
        for factor, columns in (times.inputs, times.inputs[::-1]):
            step = subject.constant(factor)
            if step is None or step.ndim or not _is_columns(subject, columns, x):
                continue
            if _width(subject, x) == 1:
                return Layer((values,), _first, same=True)
            return Layer((x,), _with_steps(int(step), _width(subject, x) or 0))
    return None


def _with_steps(step: int, width: int) -> Write:
    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        x = values[0].tensor
        columns = f"torch.arange({width}, dtype={torch_type(values[0].dtype)}, device={x}.device)"
        return f"({x} + {step} * {columns}).reshape(-1)"

    return write


def _places(subject: Subject, cast: Node) -> Optional[Layer]:
    """The indices of all values of x, one row after the other."""
    x = _placed(subject, cast)
    if x is None:
        return None

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"runtime.all_places({values[0].tensor})"

    return Layer((x,), write)


def _placed(subject: Subject, cast: Node) -> Optional[Edge]:
    """The tensor whose indices `cast` returns."""
    turned = subject.node(cast.inputs[0]) if cast.op == "Cast" else cast
    if turned.op != "Transpose" or dtypes(subject.graph, cast, "DstT") != ["int64"]:
        return None
    axes, both = subject.constant(turned.inputs[1]), subject.node(turned.inputs[0])
    if both.op != "Pack" or len(both.inputs) != 2 or integer(subject.graph, both, "axis"):
        return None
    columns = subject.node(both.inputs[1])
    x = _repeated_for(subject, columns)
    if axes is None or axes.tolist() != [1, 0] or x is None:
        return None
    whole = _is_columns(subject, both.inputs[1], x) and _is_rows(subject, both.inputs[0], x)
    return x if whole else None


def _width(subject: Subject, x: Edge) -> Optional[int]:
    """How many values a row of a matrix has."""
    shape = subject.shape(x)
    return shape[1] if shape is not None and len(shape) == 2 else None


def _repeated_for(subject: Subject, columns: Node) -> Optional[Edge]:
    """The tensor for whose every row `columns` are repeated."""
    counts = subject.node(columns.inputs[1]) if columns.op == "Tile" else columns
    if counts.op != "Pack" or len(counts.inputs) != 1:
        return None
    return _counted(subject, counts.inputs[0])


def _counted(subject: Subject, count: Edge) -> Optional[Edge]:
    """The tensor x, if `count` is x.shape[0]."""
    part = subject.node(count)
    whole = subject.node(part.inputs[0]) if part.op == "StridedSlice" else part
    first = subject.constant(part.inputs[1]) if whole.op == "Shape" else None
    is_one = integer(subject.graph, part, "shrink_axis_mask") == 1
    known = first is not None and first.tolist() == [0] and is_one
    return subject.beyond(whole.inputs[0]) if known else None


def _is_columns(subject: Subject, edge: Edge, x: Edge) -> bool:
    """Whether `edge` is 0, 1, ... for the values of each row of x."""
    tile = subject.node(edge)
    if _repeated_for(subject, tile) != x:
        return False
    columns, width = subject.constant(tile.inputs[0]), _width(subject, x)
    return width is not None and columns is not None and columns.tolist() == list(range(width))


def _is_rows(subject: Subject, edge: Edge, x: Edge) -> bool:
    """Whether `edge` is the row number of each value of x."""
    flat = subject.node(edge)
    tile = subject.node(flat.inputs[0]) if flat.op == "Reshape" else flat
    width = _width(subject, x)
    if tile.op == "Tile":
        counts = subject.constant(tile.inputs[1])
        if counts is None or counts.tolist() != [1, width]:
            return False
        tile = subject.node(tile.inputs[0])
    elif width != 1:
        return False
    rows = subject.node(tile.inputs[0]) if tile.op == "ExpandDims" else tile
    if rows.op != "Range" or _counted(subject, rows.inputs[1]) != x:
        return False
    start, step = (subject.constant(edge) for edge in rows.inputs[::2])
    return start is not None and step is not None and (int(start), int(step)) == (0, 1)
