"""Hostile text in every string attribute of every op: refused, or TensorFlow's own values."""

import functools

import numpy as np
import pytest

from migrate.model.load import load_model
from semisync.common.errors import SemisyncError
from tests.model.foreign.texts import MARKER, TEXTS, as_bytes, titled
from tests.model.ops.one_op import same, tensor
from tests.model.ops.test_cases import CASES

tf = pytest.importorskip("tensorflow").compat.v1

CASE = {}
for case in CASES:
    CASE.setdefault(case.op, case)


def graph_of(case):
    """Its GraphDef, and the names of the inputs and of the outputs."""
    with tf.Graph().as_default() as graph:
        arrays = [np.asarray(one) for one in case.inputs]
        dtypes = [tf.string if a.dtype.kind in "OSU" else tf.as_dtype(a.dtype) for a in arrays]
        inputs = [
            tf.placeholder(dtype, array.shape, f"input_{number}")
            for number, (array, dtype) in enumerate(zip(arrays, dtypes))
        ]
        outputs = case.build(*inputs)
        outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        named = [tf.identity(one, f"output_{number}") for number, one in enumerate(outputs)]
    return graph.as_graph_def(), [one.name for one in named]


def strings_of(definition):
    """The places of strings: (node, op, attribute)."""
    for node in definition.node:
        for name, value in node.attr.items():
            if value.WhichOneof("value") == "s" and not name.startswith("_"):
                yield node.name, node.op, name


def converted(path, definition, outputs):
    """The module; None where it is refused."""
    path.write_bytes(definition.SerializeToString())
    try:
        return load_model(str(path), output=outputs)
    except SemisyncError:
        return None


def in_tensorflow(definition, outputs, feeds):
    """The values; None where TensorFlow refuses the graph."""
    with tf.Graph().as_default(), tf.Session() as session:
        try:
            tf.import_graph_def(definition, name="")
            return session.run(outputs, feeds)
        except (ValueError, tf.errors.OpError):
            return None


def changed(definition, place, text):
    one = tf.GraphDef()
    one.CopyFrom(definition)
    node = next(node for node in one.node if node.name == place[0])
    node.attr[place[1]].s = text
    return one


@functools.lru_cache(None)
def places():
    """(op, place) of each string of an op's own case."""
    return [
        (op, (node, name))
        for op, case in CASE.items()
        for node, kind, name in strings_of(graph_of(case)[0])
        if kind == op
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("text", TEXTS, ids=titled)
def test_a_string_attribute_is_data(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for op, place in places():
        case = CASE[op]
        definition, outputs = graph_of(case)
        usual = next(n for n in definition.node if n.name == place[0]).attr[place[1]].s
        for hostile in (as_bytes(text), usual + as_bytes(text)):
            mutated = changed(definition, place, hostile)
            module = converted(tmp_path / "graph.pb", mutated, outputs)
            if module is None:
                continue
            feeds = {f"input_{number}:0": one for number, one in enumerate(case.inputs)}
            expected = in_tensorflow(mutated, outputs, feeds)
            given = {name[:-2]: tensor(value) for name, value in feeds.items()}
            given = {name: given[name] for name in module.tensorflow_inputs}
            try:
                found = module(given)
            except SemisyncError:  # refused, if late
                continue
            except (RuntimeError, ValueError):
                assert expected is None, (op, place, hostile)
                continue
            found = found if isinstance(found, tuple) else (found,)
            for one, other in zip(expected or (), found):
                same(one, other, 1e-5, 1e-5, (op, place, hostile))
    assert not (tmp_path / MARKER).exists()
