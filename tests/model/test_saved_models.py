"""Models from SavedModels and frozen graphs: the signature's inputs, the same scores."""

import os
import sys

import numpy as np
import pytest
import torch

import migrate
from migrate.graph.metagraph import read_graph
from semisync import cli
from semisync.common.errors import BadInput
from tests.model.features import features_of, loaded, outputs_of
from tests.model.zoo.read import models
from tests.support.written import written

tf = pytest.importorskip("tensorflow").compat.v1

WRITER = os.path.join(os.path.dirname(__file__), "write_saved_models.py")


@pytest.fixture(scope="module")
def exports(zoo):
    """{way: (directory, what model.json says)} of the zoo's SavedModels, of TensorFlow 1.15."""
    return {
        way: (model.folder / "exports" / way, said)
        for model in models(zoo)
        for way, said in model.said["exports"].items()
    }


def recorded(directory, which):
    with np.load(f"{directory}_{which}.npz", allow_pickle=True) as arrays:
        return dict(arrays)


@pytest.mark.parametrize("way", ["raw", "simple"])
def test_an_export_of_tensorflow_1_takes_the_signatures_inputs(exports, way):
    directory, said = exports[way]
    names = ["logits", "probabilities"]
    module = migrate.load_model(directory, output=names)
    keys = {key["feature"] for key in said["inputs"]}
    assert set(module.tensorflow_inputs) <= keys
    expected = recorded(directory, "outputs")
    for name, found in zip(names, outputs_of(module, features_of(recorded(directory, "inputs")))):
        assert np.abs(found - expected[name]).max() <= 2e-6


def test_a_parsing_export_takes_what_it_parses(exports):
    directory, _ = exports["parsed"]
    module = migrate.load_model(directory, output="logits")
    spec = {
        name: tf.VarLenFeature(getattr(tf, one.dtype))
        if one.sparse
        else tf.FixedLenFeature(one.shape[1:], getattr(tf, one.dtype))
        for name, one in module.tensorflow_inputs.items()
    }
    (serialized,) = recorded(directory, "inputs").values()
    with tf.Graph().as_default(), tf.Session() as session:
        parsed = session.run(tf.parse_example(serialized.tolist(), spec))
    rows = {
        name: _sparse(value) if module.tensorflow_inputs[name].sparse else torch.tensor(value)
        for name, value in parsed.items()
    }
    found = outputs_of(module, rows)[0]
    assert np.abs(found - recorded(directory, "outputs")["logits"]).max() <= 2e-6


def _sparse(value):
    strings = value.values.dtype == object
    values = list(value.values) if strings else torch.tensor(value.values)
    return torch.tensor(value.indices), values, torch.tensor(value.dense_shape)


def test_its_default_outputs_are_the_default_signatures(exports):
    module = migrate.load_model(exports["simple"][0])
    assert 'OUTPUTS = ["logits", "probabilities"]' in module.source


def test_a_saved_model_is_converted_by_the_command_with_its_vocabularies(exports, tmp_path):
    directory, _ = exports["raw"]
    out = tmp_path / "out"
    assert cli.main(["convert", str(directory), str(out), "--model", "--output", "logits"]) == 0
    found = outputs_of(loaded(out), features_of(recorded(directory, "inputs")))[0]
    assert np.abs(found - recorded(directory, "outputs")["logits"]).max() <= 2e-6
    assert os.listdir(out / "assets") == ["places.txt"]


@pytest.fixture(scope="module")
def of_tensorflow_2():
    """Folder of what `write_saved_models.py` writes."""
    return written(sys.executable, WRITER)


@pytest.mark.parametrize("name", ["keras", "keras_export"])
def test_a_keras_model_of_tensorflow_2_scores_and_has_its_parameters(of_tensorflow_2, name):
    module = migrate.load_model(of_tensorflow_2 / name)
    with np.load(of_tensorflow_2 / "keras.npz") as rows:
        given = dict(zip(module.tensorflow_inputs, (torch.tensor(rows[k]) for k in ("a", "b"))))
        assert np.abs(outputs_of(module, given)[0] - rows["scores"]).max() <= 2e-6
        assert sum(one.numel() for one in module.parameters()) == rows["trainable"]


def test_tables_and_assets_of_tensorflow_2_are_found(of_tensorflow_2):
    module = migrate.load_model(of_tensorflow_2 / "tables")
    with np.load(of_tensorflow_2 / "tables.npz") as rows:
        given = {"x": torch.tensor(rows["x"]), "k": rows["k"]}
        assert np.array_equal(outputs_of(module, given)[0], rows["scores"])


@pytest.fixture(scope="module")
def frozen(tmp_path_factory):
    """(path of a frozen graph, its inputs, its scores)."""
    path = tmp_path_factory.mktemp("frozen") / "frozen.pb"
    given = {"x": np.random.RandomState(0).randn(5, 3).astype("f"), "item": np.arange(5)}
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        item = tf.placeholder(tf.int64, [None], name="item")
        rows = tf.nn.embedding_lookup(tf.get_variable("items", [50, 4]), item)
        net = tf.nn.relu(tf.matmul(tf.concat([x, rows], 1), tf.get_variable("kernel", [7, 4])))
        score = tf.sigmoid(tf.reduce_sum(net, 1), name="score")
        session.run(tf.global_variables_initializer())
        scores = session.run(score, {x: given["x"], item: given["item"]})
        constant = tf.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["score"]
        )
    path.write_bytes(constant.SerializeToString())
    path.with_name("unfrozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    return path, {name: torch.tensor(value) for name, value in given.items()}, scores


def test_a_frozen_graph_scores_and_is_said_not_to_train(frozen, tmp_path, capsys):
    path, given, scores = frozen
    assert cli.main(["convert", str(path), str(tmp_path / "out"), "--model"]) == 0
    assert "it has no parameters and cannot be trained" in capsys.readouterr().err
    module = loaded(tmp_path / "out")
    assert np.abs(outputs_of(module, given)[0] - scores).max() <= 2e-6
    assert not list(module.parameters())
    assert "The graph was frozen" in (tmp_path / "out" / "model.py").read_text()


def test_what_asks_for_variables_is_refused_of_a_frozen_graph(frozen, tmp_path, capsys):
    path, _, _ = frozen
    out = str(tmp_path / "out")
    assert cli.main(["convert", str(path), out, "--model", "--static", "items"]) == 3
    assert "is a frozen graph, without variables: drop --static" in capsys.readouterr().err
    assert cli.main(["convert", str(path.with_name("unfrozen.pb")), out, "--model"]) == 3
    assert "has variables, such as 'items', but not their values" in capsys.readouterr().err
    with pytest.raises(BadInput, match="has no training op that changes a variable"):
        migrate.build_training(path)


@pytest.mark.long
def test_inspect_calls_inputs_as_the_signature_does(exports, capsys):
    directory, _ = exports["parsed"]
    assert cli.main(["inspect", str(directory), "--graph"]) == 0
    assert "input_example_tensor:0 = inputs" in capsys.readouterr().out


def test_the_graph_of_a_saved_model_knows_its_assets(exports):
    graph = read_graph(str(exports["raw"][0] / "saved_model.pb"))
    assert list(graph.assets.values()) == ["places.txt"]


def test_a_frozen_graph_of_one_constant_is_no_metagraph(tmp_path):
    with tf.Graph().as_default() as graph:
        tf.constant([1, 2], name="output")
    (tmp_path / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    assert migrate.load_model(tmp_path / "frozen.pb", output="output:0")({}).tolist() == [1, 2]


def test_swish_gives_what_tensorflow_gives(tmp_path):
    rows = np.linspace(-3, 3, 8, dtype="float32").reshape(2, 4)
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], "x")
        scores = session.run(tf.nn.swish(x), {x: rows})
    (tmp_path / "frozen.pb").write_bytes(graph.as_graph_def().SerializeToString())
    assert {node.op for node in graph.as_graph_def().node} & {"IdentityN"}
    found = migrate.load_model(tmp_path / "frozen.pb", output="IdentityN:0")
    np.testing.assert_allclose(found({"x": torch.tensor(rows)}).numpy(), scores, rtol=1e-6)


COMPUTED = {
    "identity": lambda: tf.identity(tf.placeholder_with_default([1.0, 1.0, 1.0], [None])),
    "constant": lambda: tf.constant([7.0, 7.0, 7.0]),
    "behind an op": lambda: tf.placeholder(tf.float32, [None], name="raw") * 10.0,
    "cast": lambda: tf.cast(tf.placeholder(tf.int32, [None], name="raw"), tf.float32),
}


@pytest.mark.parametrize("form", sorted(COMPUTED))
def test_what_a_signature_takes_is_the_input_wherever_it_lies(form, tmp_path):
    directory = str(tmp_path / "export")
    given = np.float32([1, 2, 3])
    with tf.Graph().as_default(), tf.Session() as session:
        taken = COMPUTED[form]()
        scores = taken * tf.get_variable("w", initializer=2.0)
        session.run(tf.global_variables_initializer())
        expected = session.run(scores, {taken: given})
        tf.saved_model.simple_save(session, directory, {"x": taken}, {"scores": scores})
    module = migrate.load_model(directory)
    assert set(module.tensorflow_inputs) == {"x"}
    (found,) = outputs_of(module, {"x": torch.tensor(given)})
    assert np.array_equal(found, expected)
