"""Ops that need more than inputs: variables, tables, chance; and what is refused."""

import itertools

import numpy
import pytest
import tensorflow
import torch

from migrate import runtime
from semisync.common.errors import BadInput
from tests.model.ops.cases.case import floats, raw, strings, vector
from tests.model.ops.one_op import INITIALIZERS, Program

tf = tensorflow.compat.v1

BY_HAND = {
    "DeserializeSparse",
    "GatherTree",  # see tests/model/control/test_models.py
    "LogUniformCandidateSampler",
    "LookupTableFind",
    "LookupTableFindV2",
    "LookupTableSize",
    "LookupTableSizeV2",
    "Multinomial",
    "RandomShuffle",
    "RandomStandardNormal",
    "RandomUniform",
    "RandomUniformInt",
    "ResourceGather",
    "ResourceGatherNd",
    "TruncatedNormal",
    "UniformCandidateSampler",
}
RANDOM = {
    "RandomUniform": lambda s: raw.RandomUniform(shape=s, dtype="float32"),
    "RandomStandardNormal": lambda s: raw.RandomStandardNormal(shape=s, dtype="float32"),
    "TruncatedNormal": lambda s: raw.TruncatedNormal(shape=s, dtype="float64"),
    "RandomUniformInt": lambda s: raw.RandomUniformInt(shape=s, minval=-2, maxval=5),
    "Multinomial": lambda s: raw.Multinomial(logits=[[0.0, 1.0, -1.0]], num_samples=s[0]),
    "RandomShuffle": lambda s: raw.RandomShuffle(value=tf.range(s[0])),
}


@pytest.mark.parametrize("op", sorted(RANDOM))
@pytest.mark.parametrize("known", [True, False])
def test_random_values_are_of_tensorflows_type_shape_and_distribution(op, known):
    shape = numpy.array([5000, 2], "int32")
    torch.manual_seed(5)
    tf.set_random_seed(5)
    if known:
        program = Program(lambda: RANDOM[op](shape), [])
        expected, found = program.tensorflow()[0], program.torch()[0]
    else:
        program = Program(RANDOM[op], [shape], "none")
        expected, found = program.tensorflow(shape)[0], program.torch(torch.tensor(shape))[0]
    assert op in program.ops
    assert (str(found.dtype), tuple(found.shape)) == (f"torch.{expected.dtype}", expected.shape)
    found = found.double().numpy()
    scale = expected.std()
    assert abs(found.mean() - expected.mean()) < 0.1 * scale
    assert abs(found.std() - scale) < 0.1 * scale
    for part in (0.01, 0.99):
        assert abs(numpy.quantile(found, part) - numpy.quantile(expected, part)) < 0.4 * scale
    if op == "RandomShuffle":
        assert sorted(found) == sorted(expected)
        assert found.tolist() != expected.tolist()


SAMPLERS = ["LogUniformCandidateSampler", "UniformCandidateSampler"]


def sampler(op, count, unique, limit):
    """The program of an op of two rows with a class each."""
    classes = vector([0], [limit - 2], dtype="int64")
    drawing = {"num_true": 1, "num_sampled": count, "unique": unique, "range_max": limit}
    program = Program(lambda x: getattr(raw, op)(true_classes=x, **drawing), [classes])
    return program, classes


@pytest.mark.parametrize("op", SAMPLERS)
def test_sampled_classes_are_of_tensorflows_distribution(op):
    torch.manual_seed(5)
    program, classes = sampler(op, 20000, False, 30)
    expected, found = program.tensorflow(classes), program.torch(torch.tensor(classes))
    for ours, theirs in zip(found, expected):
        assert (str(ours.dtype), tuple(ours.shape)) == (f"torch.{theirs.dtype}", theirs.shape)
    shares = [numpy.bincount(one, minlength=30) / 20000 for one in (expected[0], found[0])]
    assert numpy.abs(shares[0] - shares[1]).max() < 0.02
    numpy.testing.assert_allclose(found[1], expected[1], rtol=1e-6)
    counts = [dict(zip(of[0].tolist(), of[2].tolist())) for of in (expected, found)]
    assert counts[0] == pytest.approx(counts[1], rel=1e-6)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("op", SAMPLERS)
def test_sampled_classes_that_differ_are_drawn_and_counted_as_tensorflow_does(op):
    torch.manual_seed(5)
    program, classes = sampler(op, 5, True, 8)
    assert op in program.ops
    runs = [
        [run(given) for _ in range(2000)]
        for run, given in (
            (program.tensorflow, classes),
            (program.torch, torch.tensor(classes)),
        )
    ]
    assert all(len(set(sampled.tolist())) == 5 for of in runs for sampled, *_ in of)
    shares = [numpy.bincount(numpy.concatenate([one[0] for one in of])) / 2000 for of in runs]
    assert numpy.abs(shares[0] - shares[1]).max() < 0.08  # five standard errors
    for counts in (1, 2):
        theirs, ours = (numpy.array([one[counts].ravel() for one in of]) for of in runs)
        error = numpy.sqrt((theirs.var(0) + ours.var(0)) / 2000)
        assert (abs(ours.mean(0) - theirs.mean(0)) <= 5 * error + 1e-6).all()
    # Both round what they expect after so many draws: TensorFlow's are among torch's.
    known = {tuple(numpy.round(one[1].ravel().tolist(), 5)) for one in runs[1]}
    found = [tuple(numpy.round(one[1].ravel().tolist(), 5)) in known for one in runs[0]]
    assert numpy.mean(found) > 0.95


def test_a_sampler_of_more_classes_than_there_are_is_refused():
    with pytest.raises(BadInput, match="it samples 9 different classes, of 8"):
        sampler("UniformCandidateSampler", 9, True, 8)


TABLES = [
    (strings("a", "b"), vector(3, 4, dtype="int64"), numpy.int64(-1), strings("b", "x", "a")),
    (
        vector(7, -9, dtype="int64"),
        floats(2),
        numpy.float32(0.5),
        vector([7, 1], [-9, 7], dtype="int64"),
    ),
    (vector(1, 2, dtype="int64"), strings("x", "y"), b"?", vector(2, 5, dtype="int64")),
]


@pytest.mark.parametrize(("keys", "values", "default", "asked"), TABLES)
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("version", ["", "V2"])
def test_a_table_finds_what_tensorflows_finds(keys, values, default, asked, known, version):
    table = runtime.LookupTable(_tensor(keys), _tensor(values), default)
    inputs = [asked] if known else [asked, numpy.array(default, values.dtype)]

    def build(x, missing=default):
        kinds = {
            "key_dtype": tf.as_dtype(keys.dtype if keys.dtype != object else "string"),
            "value_dtype": tf.as_dtype(values.dtype if values.dtype != object else "string"),
        }
        op = {name: getattr(raw, name + version) for name in names}
        handle = op["HashTable"](**kinds)
        filled = op["LookupTableImport"](table_handle=handle, keys=keys, values=values)
        tf.add_to_collection(INITIALIZERS, filled)
        found = op["LookupTableFind"](table_handle=handle, keys=x, default_value=missing)
        return [found, op["LookupTableSize"](table_handle=handle)]

    names = ("HashTable", "LookupTableImport", "LookupTableFind", "LookupTableSize")
    Program(build, inputs, "none", {"HashTable" + version: table}).check(*inputs, gradient=False)


@pytest.mark.parametrize("dtype", ["float32", "string"])
def test_a_sparse_feature_that_a_data_set_delivers_has_its_three_parts(dtype):
    values = floats(1) if dtype == "float32" else strings("a")
    parts = (torch.tensor([[0, 1]]), _tensor(values), torch.tensor([2, 3]))

    def build():
        serialized = raw.SerializeSparse(
            sparse_indices=[[0, 1]], sparse_values=values, sparse_shape=[2, 3], out_type="variant"
        )
        return list(raw.DeserializeSparse(serialized_sparse=serialized, dtype=dtype))

    Program(build, [], objects={"SerializeSparse": parts}).check()


def _tensor(array):
    return runtime.Strings.of(array) if array.dtype == object else torch.tensor(array)


@pytest.mark.parametrize("indices", [vector(3, 0), vector([1], [2], dtype="int64")])
@pytest.mark.parametrize("op", ["ResourceGather", "ResourceGatherNd"])
def test_rows_of_a_variable_are_tensorflows(op, indices):
    table = floats(4, 3)
    indices = indices.reshape(-1, 1) if op.endswith("Nd") else indices

    def build(i):
        handle = raw.VarHandleOp(dtype="float32", shape=[4, 3])
        tf.add_to_collection(INITIALIZERS, raw.AssignVariableOp(resource=handle, value=table))
        return getattr(raw, op)(resource=handle, indices=i, dtype="float32")

    objects = {"VarHandleOp": torch.tensor(table)}
    Program(build, [indices], "none", objects).check(indices)


@pytest.mark.parametrize(
    ("build", "inputs"),
    [
        (lambda x, i: raw.GatherV2(params=x, indices=i, axis=0), [floats(4, 3), vector(1, -1)]),
        (lambda x, i: raw.GatherV2(params=x, indices=i, axis=0), [floats(4, 3), vector([4, 1])]),
        (lambda x, i: raw.GatherV2(params=x, indices=i, axis=1), [floats(4, 3), vector(3)]),
        (lambda x, i: raw.GatherV2(params=x, indices=i, axis=0), [strings("a", "b"), vector(-1)]),
        (
            lambda x, i: raw.GatherV2(params=x, indices=i, axis=1, batch_dims=1),
            [floats(2, 3), vector([0, 1], [-1, 0])],
        ),
        (lambda x, i: raw.GatherNd(params=x, indices=i), [floats(4, 3), vector([1, -1])]),
        (lambda x, i: raw.GatherNd(params=x, indices=i), [floats(4, 3), vector([1, 3])]),
        (
            lambda x, i: raw.ScatterNd(indices=i, updates=x, shape=[3]),
            [floats(2), vector([0], [3])],
        ),
        (
            lambda x, i: raw.UnsortedSegmentSum(data=x, segment_ids=i, num_segments=2),
            [floats(2), vector(0, 2)],
        ),
        (
            lambda x, i: raw.DynamicPartition(data=x, partitions=i, num_partitions=2),
            [floats(2), vector(0, 2)],
        ),
        (lambda x, i: raw.Slice(input=x, begin=i, size=[2, 2]), [floats(4, 3), vector(3, 0)]),
        (
            lambda x, s: raw.SparseToDense(
                sparse_indices=[[0, 1], [0, 0]], output_shape=s, sparse_values=x, default_value=0.0
            ),
            [floats(2), vector(2, 2)],
        ),
        (lambda x, s: raw.Reshape(tensor=x, shape=s), [floats(4, 3), vector(5, -1)]),
        (
            lambda i, x: raw.DenseToSparseSetOperation(
                set1=[[1], [2]],
                set2_indices=i,
                set2_values=x,
                set2_shape=numpy.array([2, 1]),
                set_operation="union",
            ),
            [vector([2, 0], dtype="int64"), vector(1)],
        ),
        (
            lambda x, k: raw.MatrixDiagPartV3(input=x, k=k, padding_value=0.0),
            [floats(4, 3), numpy.int32(5)],
        ),
        (
            lambda x, n: raw.ReverseSequence(input=x, seq_lengths=n, seq_dim=1),
            [floats(2, 3), vector(1, 4)],
        ),
        (lambda x, k: raw.TopKV2(input=x, k=k), [floats(2, 3), numpy.int32(4)]),
        (
            lambda x, y: raw.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)[0],
            [floats(2, 3), vector(-1, 1)],
        ),
    ],
)
def test_what_tensorflow_refuses_at_run_time_is_refused(build, inputs):
    program = Program(build, inputs, "none")
    with pytest.raises(Exception, match="."):
        program.tensorflow(*inputs)
    with pytest.raises((BadInput, IndexError, RuntimeError, ValueError)):
        program.torch(*map(_tensor_of, inputs))


def _tensor_of(array):
    return _tensor(numpy.asarray(array))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ragged_ranges_of_floats_are_counted_and_added_up_as_tensorflow_does(dtype):
    limits = numpy.arange(1, 40)
    rows = [numpy.array(one, dtype) for one in (0 * limits, 0.3 * limits, 0.1 + 0 * limits)]
    rows[0][0], rows[2][1] = 1, -0.1  # two that lead away from the limit: no values
    program = Program(lambda *x: list(raw.RaggedRange(starts=x[0], limits=x[1], deltas=x[2])), rows)
    for ours, theirs in zip(program.torch(*map(torch.tensor, rows)), program.tensorflow(*rows)):
        numpy.testing.assert_array_equal(ours.numpy(), theirs)


ENDS = (-numpy.inf, numpy.nan, numpy.inf, 0.0, 5.0, 1e30)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ranges_without_an_end_are_refused_where_tensorflow_refuses_them(dtype):
    arrays, refused = [numpy.zeros(1, dtype)] * 3, []
    program = Program(lambda x, y, z: list(raw.RaggedRange(starts=x, limits=y, deltas=z)), arrays)
    for given in itertools.product(ENDS[:-1], ENDS, (-1.0, 0.0, 2.0, numpy.nan, numpy.inf)):
        arrays = [numpy.array([one], dtype) for one in given]
        ours = [torch.from_numpy(array) for array in arrays]
        try:
            theirs = program.tensorflow(*arrays)
        except tf.errors.InvalidArgumentError:
            refused.append(given)
            with pytest.raises(BadInput, match="steps of 0, or no end"):
                runtime.ragged_range(*ours)
            with pytest.raises(BadInput, match="a range from"):
                runtime.arange(*(one[0] for one in ours))
        else:
            for one, other in zip(runtime.ragged_range(*ours), theirs):
                numpy.testing.assert_array_equal(one.numpy(), other)
    assert (0.0, numpy.inf, 2.0) in refused and (5.0, -numpy.inf, 2.0) not in refused


def test_a_range_of_large_integers_has_all_of_its_values():
    given = [numpy.array(one, "int32") for one in (0, 2**24 + 1, 2**24)]
    program = Program(lambda x, y, z: raw.Range(start=x, limit=y, delta=z), given)
    found = runtime.arange(*map(torch.tensor, given))
    numpy.testing.assert_array_equal(found.numpy(), program.tensorflow(*given)[0])
