"""Rules for which dimensions of an op's outputs are the batch's rows, one per kind of op."""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from graph_rewrite.graph.ops import GATHER, MERGE, NEXT, SWITCH
from migrate.graph.attributes import flag, integer, integers
from migrate.model.any_rows.sizes import At, Demand, Dim, Dims, Rows, has_rows


def dims_of(at: At) -> List[Dims]:
    """The dimensions of the outputs that are read.

    Raises:
        Fixed: they cannot be determined for an op.
        Demand: an input whose dimension must be the rows, too.
    """
    if at.node.op in _ARRAYS or not any(map(has_rows, at.given)):
        return [at.static(output) for output in range(_outputs(at))]
    rule = RULES.get(at.node.op)
    if rule is not None:
        try:
            return rule(at)
        except (IndexError, ValueError) as error:  # axes that its inputs do not have
            raise at.fixed("the sizes do not fit") from error
    return [_unambiguous(at, output) for output in range(_outputs(at))]


def _outputs(at: At) -> int:
    count = 0
    # The graph states a shape per output, so the outputs end where the shapes do.
    while at.static(count) is not None and count < 64:
        count += 1
    return max(count, 1)


def _unambiguous(at: At, output: int) -> Dims:
    """The dimensions of an unknown op's output, if their numbers leave no choice."""
    shape = at.static(output)
    if shape is None:
        raise at.fixed("it is not known which dimensions are the rows")
    rows: Dict[int, Rows] = {}
    others = set()
    for dims in at.given:
        for dim in dims or ():
            if isinstance(dim, Rows):
                rows[dim.times * at.size] = dim
            else:
                others.add(dim)
    for value in at.values:
        if value is not None and value.dtype.kind in "iu" and value.size <= 64:
            # Small integer arguments may be sizes: 128 among them need not be the rows.
            others.update(value.reshape(-1).tolist())
    if any(one in rows and one in others for one in shape):
        raise at.fixed("it is not known which dimensions are the rows")
    return tuple(rows.get(one, one) if one is not None else None for one in shape)


# One rule per kind of op, from its inputs' dimensions to its outputs'.


def broadcast(at: At, places: Sequence[int], drop: int = 0) -> List[Dim]:
    """The broadcast dimensions of inputs, aligned from the right, without the last `drop`."""
    places = [place for place in places if at.given[place] is not None]
    given = [list(at.dims(place))[: len(at.dims(place)) - drop] for place in places]
    rank = max(map(len, given))
    found: List[Dim] = []
    for axis in range(-rank, 0):
        # Axes count from the right; an input with fewer axes has none here.
        here = [(place, dims[axis]) for place, dims in zip(places, given) if len(dims) >= -axis]
        rows = next((dim for _, dim in here if isinstance(dim, Rows)), None)
        numbers = [dim for _, dim in here if dim != 1]
        for place, dim in here:
            if rows is not None and dim not in (1, None, rows):
                if dim != rows.times * at.size:
                    raise at.fixed("rows and others are combined")
                raise Demand(place, axis + len(at.dims(place)) - drop)
        found.append(rows if rows is not None else (numbers[0] if numbers else 1))
    return found


def _elementwise(at: At) -> List[Dims]:
    return [tuple(broadcast(at, range(len(at.given))))]


def _same(at: At) -> List[Dims]:
    return [at.given[0], *(at.static(output) for output in range(1, _outputs(at)))]


def _switch(at: At) -> List[Dims]:
    return [at.given[0], at.given[0]]


def _merge(at: At) -> List[Dims]:
    """For a loop the dimensions that enter it; for a cond those on which both branches agree."""
    inputs = at.node.inputs
    places = [k for k, (name, _) in enumerate(inputs) if at.graph.nodes[name].op not in NEXT]
    known = [place for place in places if at.given[place] is not None]
    return [tuple(_together(at, known, None)) if known else None, ()]


def _second(at: At) -> List[Dims]:
    return [at.given[1]]


def _select(at: At) -> List[Dims]:
    dims = tuple(broadcast(at, (1, 2)))
    condition = at.dims(0)
    # Select, unlike SelectV2, takes a condition of one axis to choose whole rows.
    if len(condition) == 1 and len(dims) > 1 and has_rows(dims[:1]) != has_rows(condition):
        raise Demand(0, 0) if has_rows(dims[:1]) else at.fixed("rows and others are combined")
    return [dims]


def _first_alone(at: At) -> List[Dims]:
    """A convolution or a pool has the batch as its first dimension, and in no other."""
    shape, dims = at.static(), at.dims(0)
    if shape is None or has_rows(dims[1:]):
        raise at.fixed("it is not known which dimensions are the rows")
    return [(dims[0], *shape[1:])]


def _matmul(at: At) -> List[Dims]:
    one, other = at.dims(0), at.dims(1)
    turned = [flag(at.graph, at.node, f"transpose_{name}") for name in "ab"]
    return [_product(at, one, other, turned, [])]


def _batch_matmul(at: At) -> List[Dims]:
    turned = [flag(at.graph, at.node, f"adj_{name}") for name in "xy"]
    return [_product(at, at.dims(0), at.dims(1), turned, broadcast(at, (0, 1), drop=2))]


def _product(
    at: At,
    one: Tuple[Dim, ...],
    other: Tuple[Dim, ...],
    turned: Sequence[bool],
    before: Sequence[Dim],
) -> Dims:
    rows, inner = (-1, -2) if turned[0] else (-2, -1)
    columns, second = (-2, -1) if turned[1] else (-1, -2)
    # The inner dimensions are summed over: if one is the rows, so is the other.
    if isinstance(one[inner], Rows) != isinstance(other[second], Rows):
        number = isinstance(one[inner], Rows)
        raise Demand(int(number), (second + len(other)) if number else (inner + len(one)))
    return (*before, one[rows], other[columns])


def _reshape(at: At) -> List[Dims]:
    dims, shape = at.dims(0), at.static()
    # Without a static shape the constant that gives the sizes serves; -1 is unknown.
    value = at.values[1]
    if shape is None and value is not None:
        shape = tuple(None if one < 0 else int(one) for one in value.reshape(-1))
    rows = [dim for dim in dims if isinstance(dim, Rows)]
    if shape is None or len(rows) != 1:
        raise at.fixed("it is not known which dimensions are the rows")
    # One unknown size of the new shape follows from the others, in a batch of the graph's size.
    numbers = [at.number(dim) for dim in dims]
    if None in shape and None not in numbers and shape.count(None) == 1:
        rest = math.prod(one for one in shape if one is not None)
        whole = math.prod(one for one in numbers if one is not None)
        shape = tuple(whole // max(rest, 1) if one is None else one for one in shape)
    fit = [axis for axis, one in enumerate(shape) if one is not None and not one % at.size and one]
    leading = all(one == 1 for one in numbers[: dims.index(rows[0])])
    if leading:  # rows are the slowest axis, also after the reshape
        first = next((axis for axis, one in enumerate(shape) if one != 1), 0)
        fit = [axis for axis in fit if axis == first]
    if not fit and shape.count(None) == 1:
        fit = [shape.index(None)]
        return [tuple(None if axis in fit else one for axis, one in enumerate(shape))]
    if len(fit) != 1:
        raise at.fixed("it is not known which dimensions are the rows")
    return [
        tuple(Rows((one or 0) // at.size) if axis in fit else one for axis, one in enumerate(shape))
    ]


def _transpose(at: At) -> List[Dims]:
    dims = at.dims(0)
    return [tuple(dims[axis] for axis in at.integers(1))]


def _expand(at: At) -> List[Dims]:
    dims, (axis,) = list(at.dims(0)), at.integers(1)
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, 1)
    return [tuple(dims)]


def _squeeze(at: At) -> List[Dims]:
    dims = at.dims(0)
    told = integers(at.graph, at.node, "squeeze_dims")
    axes = [_signed(axis) % len(dims) for axis in told]
    # Without axes every dimension of size 1 goes.
    axes = axes or [axis for axis, dim in enumerate(dims) if dim == 1]
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in axes)]


def _together(at: At, places: Sequence[int], without: Optional[int]) -> List[Dim]:
    """The dimensions that inputs have in common, except the axis along which they are joined."""
    dims = list(at.dims(places[0]))
    if any(len(at.dims(place)) != len(dims) for place in places):
        raise at.fixed("what it joins has different numbers of dimensions")
    for axis in range(len(dims)):
        if axis == without:
            continue
        here = [(place, at.dims(place)[axis]) for place in places]
        rows = next((dim for _, dim in here if isinstance(dim, Rows)), None)
        for place, dim in here:
            if rows is not None and dim not in (rows, None):
                raise Demand(place, axis)
        dims[axis] = rows if rows is not None else dims[axis]
    return dims


def _concat(at: At) -> List[Dims]:
    last = len(at.given) - 1
    places, told = (range(last), last) if at.node.op == "ConcatV2" else (range(1, last + 1), 0)
    (axis,) = at.integers(told)
    axis %= len(at.dims(places[0]))
    # Joined along the rows, one row of the input is several of the output.
    if any(isinstance(at.dims(place)[axis], Rows) for place in places):
        raise at.fixed("batches are joined, one after the other")
    dims = _together(at, places, axis)
    sizes = [at.dims(place)[axis] for place in places]
    known = [one for one in sizes if isinstance(one, int)]
    dims[axis] = sum(known) if len(known) == len(sizes) else None
    return [tuple(dims)]


def _pack(at: At) -> List[Dims]:
    dims = _together(at, range(len(at.given)), None)
    axis = _signed(integer(at.graph, at.node, "axis"))
    dims.insert(axis if axis >= 0 else axis + len(dims) + 1, len(at.given))
    return [tuple(dims)]


def _unpack(at: At) -> List[Dims]:
    dims, axis = list(at.dims(0)), _signed(integer(at.graph, at.node, "axis"))
    if isinstance(dims.pop(axis), Rows):
        raise at.fixed("the rows are taken one by one")
    return [tuple(dims)] * integer(at.graph, at.node, "num")


def _split(at: At) -> List[Dims]:
    places = (1, 0) if at.node.op == "Split" else (0, 2)
    dims, (axis,) = at.dims(places[0]), at.integers(places[1])
    axis %= len(dims)
    if isinstance(dims[axis], Rows):
        raise at.fixed("the rows are split")
    parts = [at.static(output) for output in range(_outputs(at))]
    return [
        None if part is None else tuple(part[axis] if k == axis else d for k, d in enumerate(dims))
        for part in parts
    ]


def _strided_slice(at: At) -> List[Dims]:
    dims = at.dims(0)
    found: List[Dim] = []
    begin, end, stride = (at.integers(place) for place in (1, 2, 3))
    masks = {
        name: integer(at.graph, at.node, f"{name}_mask")
        for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }

    def has(name: str, place: int) -> bool:
        return bool(masks[name] >> place & 1)

    axis = 0
    shape = at.static()
    for place in range(len(begin)):
        if has("ellipsis", place):
            # The ellipsis stands for the axes that the items after it leave over; new axes take
            # none.
            after = sum(not has("new_axis", one) for one in range(place + 1, len(begin)))
            found += dims[axis : len(dims) - after]
            axis = len(dims) - after
        elif has("new_axis", place):
            found.append(1)
        else:
            dim = dims[axis]
            axis += 1
            if has("shrink_axis", place):
                continue
            from_first = has("begin", place) or begin[place] == 0
            to_last = has("end", place)
            if isinstance(dim, Rows) and not (from_first and to_last and stride[place] == 1):
                raise at.fixed("some rows are taken by their places")
            whole = isinstance(dim, Rows)
            told = shape[len(found)] if shape is not None and len(found) < len(shape) else None
            found.append(dim if whole else told)
    return [(*found, *dims[axis:])]


def _slice(at: At) -> List[Dims]:
    dims, begin, sizes = at.dims(0), at.integers(1), at.integers(2)
    found: List[Dim] = []
    for dim, first, size in zip(dims, begin, sizes):
        if isinstance(dim, Rows) and (first or size not in (-1, dim.times * at.size)):
            raise at.fixed("some rows are taken by their places")
        number = None if dim is None or isinstance(dim, Rows) else dim - first
        found.append(dim if isinstance(dim, Rows) else number if size < 0 else size)
    return [tuple(found)]


def _signed(value: int) -> int:
    """An integer of an attribute, which may be negative."""
    return value - (1 << 64) if value >= 1 << 63 else value


def _tile(at: At) -> List[Dims]:
    def times(dim: Dim, count: int) -> Dim:
        if isinstance(dim, Rows):
            return Rows(dim.times * count)
        return None if dim is None else dim * count

    return [tuple(map(times, at.dims(0), at.integers(1)))]


def _gather(at: At) -> List[Dims]:
    params, indices, axis = at.dims(0), at.dims(1), 0
    shape = at.static()
    if not has_rows(params) and at.node.op == "ResourceGather":
        if shape is None:  # of a variable's handle
            raise at.fixed("the number of its dimensions is not known")
        return [(*indices, *shape[len(indices) :])]
    if at.node.op == "GatherV2":
        (axis,) = at.integers(2)
        axis %= len(params)
    shared = integer(at.graph, at.node, "batch_dims")
    if isinstance(params[axis], Rows):
        raise at.fixed("rows are looked up by their places")
    return [(*params[:axis], *indices[shared:], *params[axis + 1 :])]


def _gather_nd(at: At) -> List[Dims]:
    params, indices, shape = at.dims(0), at.dims(1), at.static()
    if not isinstance(indices[-1], int):
        raise at.fixed("it is not known which dimensions are the rows")
    if not has_rows(params) and shape is not None:  # which may be a variable's handle
        return [(*indices[:-1], *shape[len(indices) - 1 :])]
    return [(*indices[:-1], *params[indices[-1] :])]


def _reduce(at: At) -> List[Dims]:
    dims = at.dims(0)
    axes = {axis % len(dims) for axis in at.integers(1)} if dims else set()
    if flag(at.graph, at.node, "keep_dims"):
        return [tuple(1 if axis in axes else dim for axis, dim in enumerate(dims))]
    return [tuple(dim for axis, dim in enumerate(dims) if axis not in axes)]


def _place_of(at: At) -> List[Dims]:
    dims, (axis,) = list(at.dims(0)), at.integers(1)
    dims.pop(axis)
    return [tuple(dims)]


def _one_hot(at: At) -> List[Dims]:
    dims, (depth,) = list(at.dims(0)), at.integers(1)
    axis = _signed(integer(at.graph, at.node, "axis"))
    dims.insert(axis if axis >= 0 else len(dims), depth)
    return [tuple(dims)]


def _top(at: At) -> List[Dims]:
    dims, (count,) = at.dims(0), at.integers(1)
    return [(*dims[:-1], count)] * 2


_ARRAYS = {"Shape", "Size", "Rank", "ShapeN"}
Rule = Callable[[At], List[Dims]]
_ALIGNED = """
    Add AddN AddV2 And Atan2 BitwiseAnd BitwiseOr BitwiseXor Div DivNoNan Equal FloorDiv FloorMod
    Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mod Mul MulNoNan
    NotEqual Pow RealDiv SelectV2 SquaredDifference StringJoin Sub TruncateDiv TruncateMod Xdivy
    Xlogy"""
_UNCHANGED = """
    Abs AsString BiasAdd Bucketize Cast CheckNumerics ClipByValue Cos Cumprod Cumsum Elu Enter Erf
    Exit Exp Expm1 Floor FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 Identity Inv IsFinite
    IsInf IsNan LeakyRelu Log Log1p LogSoftmax LogicalNot Neg NextIteration OnesLike
    PlaceholderWithDefault PreventGradient Reciprocal RefEnter RefExit RefIdentity RefNextIteration
    Relu Relu6 ReverseV2 Rint Round Rsqrt Selu Sigmoid Sign Sin Snapshot Softmax Softplus Softsign
    Sqrt Square StopGradient StringLower StringStrip StringToHashBucket StringToHashBucketFast
    StringToHashBucketStrong StringToNumber StringUpper Tan Tanh ZerosLike"""
ELEMENTWISE, SAME = (frozenset(ops.split()) for ops in (_ALIGNED, _UNCHANGED))
RULES: Dict[str, Rule] = {
    **dict.fromkeys(ELEMENTWISE, _elementwise),
    **dict.fromkeys(SAME, _same),
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"), _reduce),
    **dict.fromkeys(("ArgMax", "ArgMin"), _place_of),
    **dict.fromkeys(("AvgPool", "Conv2D", "DepthwiseConv2dNative", "MaxPool"), _first_alone),
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), _batch_matmul),
    **dict.fromkeys(("Concat", "ConcatV2"), _concat),
    **dict.fromkeys(GATHER, _gather),
    **dict.fromkeys(("GatherNd", "ResourceGatherNd"), _gather_nd),
    **dict.fromkeys(("LookupTableFind", "LookupTableFindV2"), _second),
    **dict.fromkeys(MERGE, _merge),
    **dict.fromkeys(SWITCH, _switch),
    **dict.fromkeys(("Split", "SplitV"), _split),
    **dict.fromkeys(("TopK", "TopKV2"), _top),
    "ExpandDims": _expand,
    "MatMul": _matmul,
    "OneHot": _one_hot,
    "Pack": _pack,
    "Reshape": _reshape,
    "Select": _select,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "StridedSlice": _strided_slice,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unpack": _unpack,
}
