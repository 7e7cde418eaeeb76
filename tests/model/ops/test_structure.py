"""Reductions, slices, indices and segments at any shape: ranks 0 to 4, sizes from 0 on."""

import hypothesis
import numpy
import pytest
from hypothesis import strategies
from hypothesis.extra import numpy as arrays

from tests.model.ops.cases.case import raw
from tests.model.ops.one_op import Program

FEW = hypothesis.settings(max_examples=10, deadline=None, derandomize=True, database=None)
FLOATS = strategies.floats(-4, 4, width=16, allow_subnormal=False)
SHAPES = strategies.sampled_from(["all", "none"])


def floats(shape):
    return arrays.arrays("float32", shape, elements=FLOATS)


def shapes(least=0, most=4, smallest=0):
    return arrays.array_shapes(min_dims=least, max_dims=most, min_side=smallest, max_side=4)


def places(data, size, count, dtype="int32"):
    """`count` indices of an axis."""
    return data.draw(arrays.arrays(dtype, count, elements=strategies.integers(0, size - 1)))


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"])
@FEW
@hypothesis.given(strategies.data(), shapes(), strategies.booleans(), SHAPES)
def test_a_reduction_of_any_axes(op, data, shape, keep, known):
    x = data.draw(floats(shape))
    rank = len(shape)
    axes = strategies.sampled_from(range(-rank, rank) or [0])
    some = strategies.lists(axes, max_size=min(rank, 3), unique_by=lambda axis: axis % rank)
    chosen = data.draw(some)
    reduced = numpy.array(chosen, "int32")
    program = Program(lambda t: getattr(raw, op)(input=t, axis=reduced, keep_dims=keep), [x], known)
    gradient = op != "EuclideanNorm" and (op != "Prod" or bool((x != 0).all())) and x.size > 0
    with numpy.errstate(all="ignore"):
        program.check(x, gradient=gradient, rtol=1e-4, atol=1e-4)


KEYS = strategies.one_of(
    strategies.integers(-3, 2),
    strategies.builds(
        slice,
        strategies.none() | strategies.integers(-5, 5),
        strategies.none() | strategies.integers(-5, 5),
        strategies.sampled_from([None, 1, 2, -1, -2]),
    ),
    strategies.none(),
)


@hypothesis.settings(FEW, max_examples=60)
@hypothesis.given(floats((3, 4, 3)), strategies.lists(KEYS, max_size=4), strategies.data(), SHAPES)
def test_a_slice_with_any_mask(x, key, data, known):
    key = key[: 3 + key.count(None)]
    while sum(one is not None for one in key) > 3:
        key.remove(next(one for one in key if one is not None))
    if data.draw(strategies.booleans()):
        key.insert(data.draw(strategies.integers(0, len(key))), ...)
    program = Program(lambda t: t[tuple(key)], [x], known)
    program.check(x)


@pytest.mark.parametrize("known", ["all", "none"])
def test_a_backward_slice_behind_an_ellipsis_is_of_its_own_axis(known):
    x = numpy.arange(72, dtype="float32").reshape(2, 3, 4, 3)
    Program(lambda t: t[..., ::-1, 1:], [x], known).check(x)


@FEW
@hypothesis.given(strategies.data(), shapes(1, 3, 1), shapes(0, 2), SHAPES)
def test_slices_at_any_indices(data, shape, wanted, known):
    x, axis = data.draw(floats(shape)), data.draw(strategies.integers(0, len(shape) - 1))
    indices = places(data, shape[axis], wanted)
    program = Program(
        lambda t, i: raw.GatherV2(params=t, indices=i, axis=axis), [x, indices], known
    )
    program.check(x, indices)


@FEW
@hypothesis.given(strategies.data(), shapes(1, 3, 1), strategies.integers(0, 3))
def test_places_on_the_first_axes_gathered_and_scattered(data, shape, count):
    x, depth = data.draw(floats(shape)), data.draw(strategies.integers(1, len(shape)))
    columns = [places(data, size, count, "int64") for size in shape[:depth]]
    indices = numpy.stack(columns, 1) if columns else numpy.zeros((count, 0), "int64")
    program = Program(lambda t, i: raw.GatherNd(params=t, indices=i), [x, indices], "none")
    program.check(x, indices)
    updates = data.draw(floats((count, *shape[depth:])))
    program = Program(
        lambda i, t: raw.ScatterNd(indices=i, updates=t, shape=numpy.array(shape, "int64")),
        [indices, updates],
        "none",
    )
    program.check(indices, updates)


@pytest.mark.parametrize("op", ["SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin"])
@FEW
@hypothesis.given(strategies.data(), shapes(1, 3))
def test_segments_that_ascend(op, data, shape):
    x = data.draw(floats(shape))
    segments = numpy.sort(places(data, 5, shape[0]))
    program = Program(lambda t, i: getattr(raw, op)(data=t, segment_ids=i), [x, segments], "none")
    program.check(x, segments, gradient=x.size > 0)


@pytest.mark.parametrize("op", ["UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin"])
@FEW
@hypothesis.given(strategies.data(), shapes(1, 3))
def test_segments_in_any_order(op, data, shape):
    x, rank = data.draw(floats(shape)), data.draw(strategies.integers(1, len(shape)))
    numbers = strategies.integers(-1, 3)
    segments = data.draw(arrays.arrays("int32", shape[:rank], elements=numbers))
    program = Program(
        lambda t, i: getattr(raw, op)(data=t, segment_ids=i, num_segments=4), [x, segments], "none"
    )
    program.check(x, segments, gradient=op == "UnsortedSegmentSum")


@FEW
@hypothesis.given(strategies.data(), shapes(1, 3), SHAPES)
def test_tensors_joined_tiled_padded_and_turned(data, shape, known):
    x, y = data.draw(floats(shape)), data.draw(floats(shape))
    axis = data.draw(strategies.integers(-len(shape), len(shape) - 1))
    order = data.draw(strategies.permutations(range(len(shape))))
    times = data.draw(strategies.lists(strategies.integers(1, 2), min_size=x.ndim, max_size=x.ndim))
    widths = data.draw(arrays.arrays("int32", (x.ndim, 2), elements=strategies.integers(0, 2)))

    def build(t, u):
        return [
            raw.ConcatV2(values=[t, u], axis=axis),
            raw.Pack(values=[t, u], axis=axis),
            raw.Transpose(x=t, perm=order),
            raw.Tile(input=t, multiples=times),
            raw.Pad(input=t, paddings=widths),
            raw.ReverseV2(tensor=t, axis=[axis]),
            raw.Cumsum(x=t, axis=axis),
        ]

    Program(build, [x, y], known).check(x, y)


@FEW
@hypothesis.given(arrays.arrays("int64", shapes(1, 1), elements=strategies.integers(-2, 2)))
def test_unique_values_in_the_order_of_their_first_occurrence(x):
    Program(lambda t: raw.UniqueWithCounts(x=t), [x], "none").check(x)


@FEW
@hypothesis.given(strategies.data(), strategies.integers(0, 4), strategies.integers(1, 3))
def test_sparse_rows_filled_reshaped_and_made_dense(data, rows, columns):
    there = data.draw(arrays.arrays(bool, (rows, columns)))
    indices = numpy.argwhere(there).astype("int64").reshape(-1, 2)
    values = data.draw(floats(len(indices)))
    shape = numpy.array([rows, columns], "int64")

    def build(i, x, s):
        filled = raw.SparseFillEmptyRows(indices=i, values=x, dense_shape=s, default_value=9.0)
        dense = raw.SparseToDense(
            sparse_indices=i, output_shape=s, sparse_values=x, default_value=-1.0
        )
        reshaped = raw.SparseReshape(input_indices=i, input_shape=s, new_shape=s[::-1])
        return [*filled, dense, *reshaped]

    Program(build, [indices, values, shape], "none").check(indices, values, shape, gradient=False)
