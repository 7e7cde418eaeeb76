"""A small graph that asks for more than there is, or never ends, ends with one sentence.

Each is converted in a process that may take no more than 4 GB, in which nothing else has been
computed; a graph that is merely long converts, and computes what it says.
"""

import json
import runpy
import subprocess
import sys

import numpy as np
import pytest

from tests.support.asked import asked
from tests.support.graph_file import GraphFile, called

pytest.importorskip("tensorflow")

BYTES = 4_000_000_000
FLOAT, INT, LONG = np.float32, np.int32, np.int64


def _summed(graph, name):
    """A score to which the sum of a vector or matrix of floats is added."""
    axes = graph.constant("axes", np.array([0], INT))
    graph.add("sum", "Sum", name, axes, T=FLOAT, Tidx=INT, keep_dims=True)
    graph.add("score", "Add", "x", "sum", T=FLOAT)


def fill(graph):
    graph.constant("dims", np.array([200_000, 200_000], INT))
    graph.constant("zero", FLOAT(0))
    _summed(graph, graph.add("big", "Fill", "dims", "zero", T=FLOAT, index_type=INT))


def count(graph):
    for name, value in (("start", 0), ("limit", 1 << 40), ("step", 1)):
        graph.constant(name, LONG(value))
    graph.add("big", "Range", "start", "limit", "step", Tidx=LONG)
    _summed(graph, graph.add("floats", "Cast", "big", SrcT=LONG, DstT=FLOAT))


def tile(graph):
    graph.constant("ones", np.ones(1000, FLOAT))
    graph.constant("times", np.array([10**8], INT))
    _summed(graph, graph.add("big", "Tile", "ones", "times", T=FLOAT, Tmultiples=INT))


def outer(graph):
    column = graph.constant("column", np.ones((60_000, 1), FLOAT))
    row = graph.constant("row", np.ones((1, 60_000), FLOAT))
    _summed(graph, graph.add("big", "Mul", column, row, T=FLOAT))


def diagonal(graph):
    graph.constant("ones", np.ones(60_000, FLOAT))
    _summed(graph, graph.add("big", "Diag", "ones", T=FLOAT))


def strings(graph):
    graph.spread("text", b"a", 1 << 38)
    graph.add("hashed", "StringToHashBucketFast", "text", num_buckets=10)
    _summed(graph, graph.add("floats", "Cast", "hashed", SrcT=LONG, DstT=FLOAT))


def splats(graph):
    axes = graph.constant("axes", np.array([0], INT))
    sums = []
    for k in range(12):
        splat = graph.spread(f"splat_{k}", FLOAT(1), (1 << 29) - 1 - k)
        sums.append(graph.add(f"sum_{k}", "Sum", splat, axes, T=FLOAT, Tidx=INT, keep_dims=False))
    graph.add("score", "AddN", "x", *sums, T=FLOAT, N=13)


def last_of_several(graph):
    _summed(graph, graph.spread("big", FLOAT(1), 1 << 30, given=3))


def sizes(graph):
    graph.spread("big", INT(1), 1 << 20)
    graph.add("score", "Reshape", "x", "big", T=FLOAT, Tshape=INT)


def unpack(graph):
    graph.add("big", "Unpack", "x", T=FLOAT, num=10**9, axis=1)
    graph.add("score", "Sigmoid", "big", T=FLOAT)


def split(graph):
    graph.constant("axis", INT(1))
    graph.add("big", "Split", "axis", "x", T=FLOAT, num_split=10**9)
    graph.add("score", "Sigmoid", "big", T=FLOAT)


def calls_itself(graph):
    again = ("again", "PartitionedCall", ["a"], called("f"))
    graph.function("f", "again:output:0", again)
    graph.call("score", "f", "x")


def calls_twice(graph):
    graph.function("f39", "end:y:0", ("end", "Sigmoid", ["a"], {"T": FLOAT}))
    for k in range(39):
        one = ("one", "PartitionedCall", ["a"], called(f"f{k + 1}"))
        two = ("two", "PartitionedCall", ["one:output:0"], called(f"f{k + 1}"))
        graph.function(f"f{k}", "two:output:0", one, two)
    graph.call("score", "f0", "x")


def calls_of_nothing(graph):
    graph.function("f59", "a")
    for k in range(59):
        one = ("one", "PartitionedCall", ["a"], called(f"f{k + 1}"))
        two = ("two", "PartitionedCall", ["one:output:0"], called(f"f{k + 1}"))
        graph.function(f"f{k}", "two:output:0", one, two)
    graph.call("score", "f0", "x")


def call_of_its_result(graph):
    graph.function("same", "a")
    graph.call("call", "same", "call")
    graph.add("score", "Identity", "call", T=FLOAT)


def sum_of_itself(graph):
    graph.add("sum", "Add", "sigmoid", "x", T=FLOAT)
    graph.add("sigmoid", "Sigmoid", "sum", T=FLOAT)
    graph.add("score", "Sigmoid", "sigmoid", T=FLOAT)


def identity_of_itself(graph):
    graph.add("one", "Identity", "two", T=FLOAT)
    graph.add("two", "Identity", "one", T=FLOAT)
    graph.add("score", "Add", "x", "one", T=FLOAT)


def conditions(graph, deep=200):
    """Branches within branches."""
    graph.add("flag", "Placeholder", dtype=np.bool_, shape=[])
    inside, ends = "x", []
    for k in range(deep):
        graph.add(f"c{k}/pred_id", "Identity", "flag", T=np.bool_)
        graph.add(f"c{k}/Switch", "Switch", inside, f"c{k}/pred_id", T=FLOAT)
        ends.append(graph.add(f"c{k}/Neg", "Neg", f"c{k}/Switch", T=FLOAT))
        inside = f"c{k}/Switch:1"
    last = graph.add("inside", "Relu", inside, T=FLOAT)
    for k in reversed(range(deep)):
        last = graph.add(f"c{k}/Merge", "Merge", ends[k], last, N=2, T=FLOAT)
    graph.add("score", "Sigmoid", last, T=FLOAT)


def some_conditions(graph):
    conditions(graph, deep=50)


def loops(graph):
    """Loops within loops."""
    graph.add("flag", "Placeholder", dtype=np.bool_, shape=[])
    inside, flag = "x", "flag"
    for k in range(30):
        frame = {"frame_name": f"loop {k}".encode()}
        graph.add(f"l{k}/Enter", "Enter", inside, T=FLOAT, **frame)
        flag = graph.add(f"l{k}/flag", "Enter", flag, T=np.bool_, is_constant=True, **frame)
        graph.add(f"l{k}/Merge", "Merge", f"l{k}/Enter", f"l{k}/Next", N=2, T=FLOAT)
        graph.add(f"l{k}/LoopCond", "LoopCond", flag)
        graph.add(f"l{k}/Switch", "Switch", f"l{k}/Merge", f"l{k}/LoopCond", T=FLOAT)
        inside = graph.add(f"l{k}/body", "Identity", f"l{k}/Switch:1", T=FLOAT)
    last = graph.add("inside", "Relu", inside, T=FLOAT)
    for k in reversed(range(30)):
        graph.add(f"l{k}/Next", "NextIteration", last, T=FLOAT)
        last = graph.add(f"l{k}/Exit", "Exit", f"l{k}/Switch", T=FLOAT)
    graph.add("score", "Sigmoid", last, T=FLOAT)


CIRCLE = "is computed from itself; the graph is damaged"
COMPUTED = "values of constants alone, expected at most 268,435,456"
LETTERS = "the source of the model has more than 8,388,608 letters"
SPREAD = "of one value each, which the file has once, have more than 256 MiB as tensors"
CALLED = "its functions call each other, or themselves, to more than"
ATTACKS = {
    fill: f"node 'big' cannot be converted: it makes 40,000,000,000 {COMPUTED}",
    count: f"node 'big' cannot be converted: it makes 1,099,511,627,776 {COMPUTED}",
    tile: f"node 'big' cannot be converted: it makes 100,000,000,000 {COMPUTED}",
    outer: f"node 'big' cannot be converted: it makes 3,600,000,000 {COMPUTED}",
    diagonal: f"node 'big' cannot be converted: it makes 3,600,000,000 {COMPUTED}",
    strings: SPREAD,
    splats: SPREAD,
    last_of_several: "has 3 values, the last of which stands for 1,073,741,822",
    sizes: "its input 1 has 1,048,576 sizes or axes, expected at most 4,096",
    unpack: f"with node 'big' (Unpack) {LETTERS}",
    split: f"with node 'big' (Split) {LETTERS}",
    calls_itself: CALLED,
    calls_twice: CALLED,
    calls_of_nothing: CALLED,
    call_of_its_result: CIRCLE,
    sum_of_itself: CIRCLE,
    identity_of_itself: CIRCLE,
    conditions: "lies in 65 branches and loops, one in the other, expected at most 64",
    loops: "lies in 17 branches and loops, one in the other, expected at most 64, of which 16",
}


def sigmoids(graph):
    last = "x"
    for k in range(2000):
        last = graph.add(f"end_{k}" if k < 1999 else "score", "Sigmoid", last, T=FLOAT)


def identities(graph):
    last = graph.add("scope/start", "Sigmoid", "x", T=FLOAT)
    for k in range(5000):
        last = graph.add(f"scope/same_{k}", "Identity", last, T=FLOAT)
    graph.add("score", "Sigmoid", last, T=FLOAT)


def sum_of_thousands(graph):
    graph.add("score", "AddN", *["x"] * 5000, T=FLOAT, N=5000)


def _rows(graph):
    graph.add("shape", "Shape", "x", T=FLOAT, out_type=INT)
    first, second = (graph.constant(f"at_{k}", np.array([k], INT)) for k in range(2))
    slices = {"T": INT, "Index": INT, "shrink_axis_mask": 1}
    return graph.add("rows", "StridedSlice", "shape", first, second, second, **slices)


def power_of_a_size(graph):
    exponent = graph.constant("exponent", INT(1 << 30))
    power = graph.add("power", "Pow", _rows(graph), exponent, T=INT)
    graph.add("float", "Cast", power, SrcT=INT, DstT=FLOAT)
    graph.add("score", "Add", "x", "float", T=FLOAT)


def squares_of_a_size(graph):
    last = _rows(graph)
    for k in range(60):
        last = graph.add(f"square_{k}", "Mul", last, last, T=INT)
    graph.add("float", "Cast", last, SrcT=INT, DstT=FLOAT)
    graph.add("score", "Add", "x", "float", T=FLOAT)


def one_input_of_thousands(graph):
    last = "x"
    for k in range(300):
        last = graph.add(f"sum_{k}", "Add", last, "x", T=FLOAT)
    graph.add("score", "Sigmoid", last, T=FLOAT)


def _sigmoids(x):
    for _ in range(2000):
        x = 1 / (1 + np.exp(-x))
    return x


HONEST = {
    sigmoids: _sigmoids,
    identities: lambda x: 1 / (1 + np.exp(-1 / (1 + np.exp(-x)))),
    sum_of_thousands: lambda x: 5000 * x,
    one_input_of_thousands: lambda x: 1 / (1 + np.exp(-301 * x.astype(float))),
    power_of_a_size: lambda x: x,  # of two rows: all powers of 2 from 2 ** 32 on are 0 in 32 bits
}


@pytest.fixture(scope="module")
def converted(request, tmp_path_factory):
    """By name, (exit code, what was said) of each graph asked for, one after the other."""
    folder = tmp_path_factory.mktemp("bombs")
    paths = {}
    for build in (*asked(request), squares_of_a_size, some_conditions):
        graph = GraphFile(folder / f"{build.__name__}.pb")
        build(graph)
        paths[build.__name__] = graph.save()
    child = [sys.executable, "-m", "tests.model.convert_bombs", str(BYTES), str(folder)]
    done = subprocess.run(
        [*child, *paths.values()], check=True, timeout=600, stdout=subprocess.PIPE
    )
    return folder, json.loads(done.stdout.decode().splitlines()[-1])


@pytest.mark.long
@pytest.mark.parametrize("build", ATTACKS, ids=lambda build: build.__name__)
def test_what_asks_for_more_than_there_is_ends_with_one_sentence(build, converted):
    code, said = converted[1][build.__name__]
    assert code == 3, said
    assert ATTACKS[build] in said and said.count("\n") == 1


@pytest.mark.parametrize("build", HONEST, ids=lambda build: build.__name__)
def test_what_is_merely_long_converts_and_computes_the_same(build, converted):
    torch = pytest.importorskip("torch")
    folder, ends = converted
    code, said = ends[build.__name__]
    assert code == 0, said
    x = np.array([[0.5, -1, 2], [0, 3, 1]], FLOAT)
    found = _model(folder, build)({"x": torch.tensor(x)})
    np.testing.assert_allclose(found.numpy(), HONEST[build](x), rtol=1e-4, atol=1e-6)


def test_numbers_of_a_size_do_not_grow_without_end(converted):
    torch = pytest.importorskip("torch")
    model = _model(converted[0], squares_of_a_size)
    assert model({"x": torch.zeros(1, 3)}).tolist() == [[1, 1, 1]]
    with pytest.raises(ValueError, match="[Oo]verflow"):  # 2 ** 2 ** 60, of which torch has 32 bits
        model({"x": torch.zeros(2, 3)})


def test_conditions_within_conditions_are_written_once_each(converted):
    assert converted[1][some_conditions.__name__][0] == 0


def _model(folder, build):
    return runpy.run_path(str(folder / f"{build.__name__}.out" / "model.py"))["load"]()
