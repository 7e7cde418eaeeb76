"""Graphs of the tests, mutated: each is refused by a sentence, or gives TensorFlow's values.

    python -m tests.model.foreign.fuzz write FOLDER FIRST COUNT     graphs by their numbers
    python -m tests.model.foreign.fuzz convert FOLDER               what torch gives for each
    python -m tests.model.foreign.fuzz score FOLDER                 what TensorFlow gives

`convert` runs within `MEMORY` and `SECONDS` per graph, or ends. `score` ends where TensorFlow does,
or takes as long; it goes on with the next graph when it is started again.
"""

import json
import pathlib
import random
import resource
import signal
import sys

import numpy as np

MEMORY, SECONDS = 4_000_000 << 10, 60
_IN_ITS_RUN = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError),
    *(TimeoutError, TypeError, ValueError),
)
_NUMBERS = [0, 1, -1, 2, 3, 7, 1 << 20, 1 << 31, -(1 << 31), (1 << 62) + 1]
_OTHERS = [
    "Identity",
    "Reshape",
    "Add",
    "ConcatV2",
    "Fill",
    "Tile",
    "Range",
    "Pack",
    "Merge",
    "Exit",
]


def main(step, folder, *numbers):
    """See the module."""
    folder = pathlib.Path(folder)
    if step == "write":
        write(folder, *map(int, numbers))
    else:
        {"convert": convert, "score": score}[step](folder)


def write(folder, first, count):
    """Graph NUMBER.pb, its feeds NUMBER.npz and its outputs NUMBER.json, for each number."""
    sources = bases()
    for number in range(first, first + count):
        draw = random.Random(number)
        definition, outputs, feeds = sources[draw.randrange(len(sources))]
        mutated = type(definition)()
        mutated.CopyFrom(definition)
        for _ in range(draw.randint(1, 3)):
            draw.choice(MUTATIONS)(mutated, draw)
        (folder / f"{number}.pb").write_bytes(mutated.SerializeToString())
        (folder / f"{number}.json").write_text(json.dumps(outputs))
        np.savez(folder / f"{number}.npz", **feeds)


def bases():
    """(GraphDef, outputs, feeds) of each op's case, within a function too, and of loops."""
    import tensorflow

    from tests.model.foreign.test_attributes import CASE, graph_of

    tf = tensorflow.compat.v1
    found = []
    for case in CASE.values():
        definition, outputs = graph_of(case)
        feeds = {f"input_{number}": np.asarray(one) for number, one in enumerate(case.inputs)}
        found.append((definition, outputs, feeds))
    ramp = np.arange(6, dtype="f").reshape(2, 3)
    for control in (tf.enable_control_flow_v2, tf.disable_control_flow_v2):
        control()
        found += [(with_functions(tf), ["output_0:0"], {"input_0": ramp})] * 20
    return found


def with_functions(tf):
    """A GraphDef of functions that call each other, in a condition and in a loop."""
    inner = tf.function(lambda y: tf.nn.relu(y) * 2.0, autograph=False)
    outer = tf.function(lambda y: inner(y) + inner(-y), autograph=False)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [2, 3], "input_0")
        y = tf.cond(tf.reduce_sum(x) > 3.0, lambda: outer(x), lambda: x)
        y = tf.while_loop(lambda n, _: n < 3, lambda n, z: (n + 1, inner(z)), [0, y])[1]
        tf.identity(y, "output_0")
    return graph.as_graph_def()


def an_attribute(graph, draw):
    """Another value of a kind that the attribute has, or another kind, or none."""
    node = draw.choice(_nodes(graph))
    if not node.attr:
        return
    name = draw.choice(sorted(node.attr))
    value = node.attr[name]
    kind = value.WhichOneof("value")
    change = draw.random()
    if change < 0.15:
        del node.attr[name]
    elif change < 0.3:
        other = draw.choice(_nodes(graph))
        if other.attr:
            value.CopyFrom(other.attr[draw.choice(sorted(other.attr))])
    elif kind == "i":
        value.i = draw.choice(_NUMBERS)
    elif kind == "f":
        value.f = draw.choice([0.0, -1.0, 1e30, float("nan"), float("inf")])
    elif kind == "b":
        value.b = not value.b
    elif kind == "s":
        value.s = draw.choice([b"", b"\xff", b"SAME", b"x" * 1000, value.s[::-1]])
    elif kind == "type":
        value.type = draw.choice([0, 1, 2, 3, 7, 9, 10, 14, 19, 20, 21, 103, 999])
    elif kind == "list" and value.list.i:
        value.list.i[draw.randrange(len(value.list.i))] = draw.choice(_NUMBERS)
    elif kind == "shape":
        _reshape(value.shape, draw)
    elif kind == "tensor":
        a_constant(graph, draw, value.tensor)


def a_constant(graph, draw, tensor=None):
    """Other bytes, another shape or another type of a constant."""
    tensors = [n.attr["value"].tensor for n in _nodes(graph) if n.op == "Const"]
    if tensor is None and not tensors:
        return
    tensor = tensor or draw.choice(tensors)
    change = draw.random()
    if change < 0.3:
        _reshape(tensor.tensor_shape, draw)
    elif change < 0.4:
        tensor.dtype = draw.choice([1, 2, 3, 7, 9, 10, 14])
    elif tensor.tensor_content:
        content = bytearray(tensor.tensor_content)
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        tensor.tensor_content = bytes(content)
    elif tensor.int_val:
        tensor.int_val[0] = max(-(1 << 31), min((1 << 31) - 1, draw.choice(_NUMBERS)))
    elif tensor.float_val:
        tensor.float_val[0] = draw.choice([0.0, -2.0, 1e30])
    elif tensor.string_val:
        tensor.string_val[0] = draw.choice([b"", b"\xff", b"a" * 1000])


def an_edge(graph, draw):
    """An input from elsewhere, from itself, twice, not at all, or in another place."""
    node = draw.choice(_nodes(graph))
    sources = [other.name for other in _nodes(graph)]
    change = draw.random()
    if node.input and change < 0.5:
        source = draw.choice([*sources, node.name])
        node.input[draw.randrange(len(node.input))] = source + draw.choice(["", "", ":1", ":9"])
    elif node.input and change < 0.65:
        del node.input[draw.randrange(len(node.input))]
    elif node.input and change < 0.8:
        inputs = list(node.input)
        draw.shuffle(inputs)
        node.input[:] = inputs
    else:
        node.input.append(draw.choice(["", "^"]) + draw.choice(sources))


def an_op(graph, draw):
    """Another op in its place."""
    names = [node.op for node in _nodes(graph)]
    draw.choice(_nodes(graph)).op = draw.choice([*names, *_OTHERS])


def a_shape(graph, draw):
    """Another shape of what a node says of its outputs."""
    shapes = [
        shape
        for node in _nodes(graph)
        for value in node.attr.values()
        for shape in ([value.shape] if value.HasField("shape") else value.list.shape)
    ]
    if shapes:
        _reshape(draw.choice(shapes), draw)


def a_call(graph, draw):
    """A call of another function, of itself, or of none; a result from elsewhere."""
    functions = list(graph.library.function)
    calls = [v.func for n in _nodes(graph) for v in n.attr.values() if v.func.name]
    if not functions:
        return
    names = [one.signature.name for one in functions]
    if calls and draw.random() < 0.6:
        draw.choice(calls).name = draw.choice([*names, "nowhere"])
    else:
        one = draw.choice(functions)
        for key in one.ret:
            values = [node.name + ":0" for node in one.node_def]
            one.ret[key] = draw.choice([*values, one.ret[key], "nowhere:output:0"])


MUTATIONS = [an_attribute, an_attribute, a_constant, an_edge, an_edge, an_op, a_shape, a_call]


def _nodes(graph):
    inner = [node for one in graph.library.function for node in one.node_def]
    return [*graph.node, *inner]


def _reshape(shape, draw):
    change = draw.random()
    if change < 0.2:
        shape.unknown_rank = True
        del shape.dim[:]
    elif shape.dim and change < 0.7:
        shape.dim[draw.randrange(len(shape.dim))].size = draw.choice([-1, *_NUMBERS])
    elif shape.dim and change < 0.85:
        del shape.dim[draw.randrange(len(shape.dim))]
    else:
        shape.dim.add(size=draw.choice([-1, *_NUMBERS]))


def convert(folder):
    """NUMBER.torch.npz of what a graph gives, or NUMBER.refused; a defect ends it."""
    from migrate.model.load import load_model
    from semisync.common.errors import SemisyncError
    from tests.model.features import features_of

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for path in sorted(folder.glob("*.pb")):
        done = path.with_suffix(".torch.npz"), path.with_suffix(".refused")
        if any(one.exists() for one in done):
            continue
        print(path, flush=True)
        signal.alarm(SECONDS)
        try:
            module = load_model(str(path), output=json.loads(path.with_suffix(".json").read_text()))
        except SemisyncError as error:
            done[1].write_text(str(error))
            continue
        with np.load(path.with_suffix(".npz"), allow_pickle=True) as feeds:
            given = features_of({name: feeds[name] for name in feeds})
        signal.signal(signal.SIGALRM, _too_long)  # a loop of the graph's own may have no end
        signal.alarm(SECONDS)
        try:
            found = module(given)
        except (SemisyncError, *_IN_ITS_RUN) as error:
            done[1].write_text(f"in its run: {type(error).__name__}: {error}")
            continue
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        found = found if isinstance(found, tuple) else (found,)
        values = [one.numpy() if hasattr(one, "numpy") else one for one in map(_detached, found)]
        np.savez(done[0], **{f"output_{number}": one for number, one in enumerate(values)})
    signal.alarm(0)


def _too_long(signum, frame):
    raise TimeoutError(f"more than {SECONDS} s")


def _detached(value):
    return value.detach() if hasattr(value, "detach") else value


def score(folder):
    """NUMBER.tensorflow.npz of what TensorFlow gives twice alike, where torch gives something."""
    import tensorflow

    tf = tensorflow.compat.v1
    resource.setrlimit(resource.RLIMIT_AS, (3 * MEMORY, 3 * MEMORY))
    for path in sorted(folder.glob("*.torch.npz")):
        number = path.name.partition(".")[0]
        begun = folder / f"{number}.begun"
        if begun.exists():  # it has ended TensorFlow's process, or is done
            continue
        begun.touch()
        signal.alarm(SECONDS)
        definition = tf.GraphDef()
        definition.ParseFromString((folder / f"{number}.pb").read_bytes())
        outputs = json.loads((folder / f"{number}.json").read_text())
        with np.load(folder / f"{number}.npz", allow_pickle=True) as arrays:
            feeds = {f"{name}:0": arrays[name] for name in arrays}
        with tf.Graph().as_default() as graph, tf.Session() as session:
            try:
                tf.import_graph_def(definition, name="")
                feeds = {graph.get_tensor_by_name(name): one for name, one in feeds.items()}
                values, again = (session.run(outputs, feeds) for _ in range(2))
            except Exception as error:  # a graph that TensorFlow does not run has no values
                (folder / f"{number}.tensorflow").write_text(str(error))
                continue
        if all(map(same, values, again)):
            named = {f"output_{k}": one for k, one in enumerate(values)}
            np.savez(folder / f"{number}.tensorflow.npz", **named)
    signal.alarm(0)


def same(one, other):
    """Whether two arrays have equal types, shapes and, as floats go, values."""
    one, other = np.asarray(one), np.asarray(other)
    if one.shape != other.shape:
        return False
    if one.dtype.kind in "OSU":
        return one.astype(object).tolist() == other.astype(object).tolist()
    with np.errstate(all="ignore"):
        return one.dtype == other.dtype and np.allclose(one, other, 1e-4, 1e-5, equal_nan=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
