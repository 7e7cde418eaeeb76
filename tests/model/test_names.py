"""What iterators and queues deliver is called as the feature that it is, where the graph knows."""

import pytest
import torch

from migrate.graph.interface import find_interface
from migrate.graph.interface.names import Name, delivered_names
from migrate.graph.metagraph import read_graph
from migrate.model.load import load_model
from tests.model.zoo.read import models
from tests.support.require import shared

tf = pytest.importorskip("tensorflow").compat.v1

SPEC = {
    "b": tf.io.FixedLenFeature([2], tf.float32),
    "A": tf.io.FixedLenFeature([], tf.int64),
    "words": tf.io.VarLenFeature(tf.string),
    "label": tf.io.FixedLenFeature([], tf.float32),
}


def names_of(path, build):
    """The names that the graph of `build()` has for what it delivers, by "NODE:k"."""
    with tf.Graph().as_default():
        build()
        tf.train.export_meta_graph(str(path))
    return {
        f"{node}:{k}": name for (node, k), name in delivered_names(read_graph(str(path))).items()
    }


def parsed(serialized):
    features = tf.io.parse_single_example(serialized, SPEC)
    return features, features.pop("label")


def batch_parsed(serialized):
    features = tf.io.parse_example(serialized, SPEC)
    features["b"] = tf.cast(features["b"], tf.float64)
    return features, features.pop("label")


def files():
    return tf.data.Dataset.from_tensor_slices(["a", "b"]).interleave(
        lambda name: tf.data.TFRecordDataset(name), cycle_length=2
    )


ROUTES = {
    "map, then batch": lambda: files().map(parsed).shuffle(8).batch(4).prefetch(1),
    "batch, then map": lambda: files().batch(4).map(batch_parsed, num_parallel_calls=2).repeat(),
    "two maps": lambda: files().map(parsed).map(lambda x, y: (x, y)).batch(4),
    "parse_example_dataset": lambda: (
        files()
        .batch(4)
        .apply(tf.data.experimental.parse_example_dataset(SPEC))
        .map(lambda x: (x, x.pop("label")))
    ),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("kind", ["one shot", "initializable"])
def test_a_parser_in_the_data_set_tells_the_names(route, kind, tmp_path):
    def build():
        make = tf.data.make_one_shot_iterator
        if kind == "initializable":
            make = tf.data.make_initializable_iterator
        make(ROUTES[route]()).get_next()

    keys = ["A", "b", "words", "label"]  # the features in their sorted order, then the label
    expected = {f"IteratorGetNext:{k}": Name(key, False) for k, key in enumerate(keys)}
    assert names_of(tmp_path / "graph.meta", build) == expected


def test_a_parser_before_a_queue_tells_the_names(tmp_path):
    def build():
        names = tf.train.string_input_producer(["a"])
        features = tf.io.parse_single_example(tf.TFRecordReader().read(names)[1], SPEC)
        tf.train.batch([features["label"], features["b"], tf.constant(3.0)], 4, name="rows")

    expected = {"rows:0": Name("label", False), "rows:1": Name("b", False)}
    assert names_of(tmp_path / "graph.meta", build) == expected


def test_a_name_that_a_placeholder_has_and_one_of_two_iterators_are_left(tmp_path):
    def build():
        tf.placeholder(tf.float32, [], name="A")
        for _ in range(2):
            tf.data.make_one_shot_iterator(files().map(parsed)).get_next()

    assert names_of(tmp_path / "graph.meta", build) == {}


def test_what_is_computed_of_several_features_has_no_name(tmp_path):
    def mixed(serialized):
        features, label = parsed(serialized)
        return features["b"] * tf.cast(features["A"], tf.float32), label

    def build():
        tf.data.make_one_shot_iterator(files().map(mixed)).get_next()

    expected = {"IteratorGetNext:1": Name("label", False)}
    assert names_of(tmp_path / "graph.meta", build) == expected


def test_a_look_up_in_a_scope_that_is_called_as_a_layer_of_columns_names_nothing(tmp_path):
    def build():
        words = tf.data.make_one_shot_iterator(
            tf.data.Dataset.from_tensor_slices([["a b"]]).map(lambda line: {"words": line})
        ).get_next()["words"]
        with tf.variable_scope("input_layer"):
            table = tf.get_variable("table", [8, 2])
            found = tf.strings.split(words)
            ids = tf.strings.to_hash_bucket_fast(found.values, 8)
            tf.nn.safe_embedding_lookup_sparse(
                table, tf.SparseTensor(found.indices, ids, found.dense_shape)
            )

    assert names_of(tmp_path / "graph.meta", build) == {}


def test_the_scopes_of_feature_columns_give_guesses_that_are_right(zoo):
    known = set()
    for model in models(zoo):
        if not model.said["name"].startswith("canned"):
            continue
        graph = read_graph(model.meta)
        names = delivered_names(graph)
        known |= {name.name for name in names.values()}
        for fed in model.said["inputs"]:
            node, _, k = fed.get("tensor", fed["point"]).partition(":")
            edge = graph.nodes[node].inputs[0] if fed["sparse"] else (node, int(k))
            assert names.get(edge) in (None, Name(fed["feature"], True)), fed
    assert len(known) == 17  # all that a column reads but the weights of rows


def test_layers_of_ones_own_are_no_columns(tmp_path):
    def build():
        rows = tf.data.Dataset.from_tensors({"x": [[1.0]], "y": [[2.0]]})
        features = tf.data.make_one_shot_iterator(rows).get_next()
        with tf.variable_scope("input_layer"):
            for name in ("fc1", "fc2"):
                with tf.variable_scope(name):
                    tf.matmul(features["x"], tf.get_variable("kernel", [1, 1]))

    assert names_of(tmp_path / "graph.meta", build) == {}


def test_a_model_takes_its_features_by_either_name(zoo):
    (model,) = [m for m in models(zoo) if m.said["name"] == "canned_linear_mean"]
    module = load_model(model.prefix)
    inputs = module.tensorflow_inputs
    assert inputs["price"].guessed and inputs["price"].tensors == ["IteratorGetNext:11"]
    from tests.model.features import features, outputs_of

    own = features(model)
    renamed = {
        next((name for name, one in inputs.items() if key in one.own_names), key): value
        for key, value in own.items()
    }
    assert {"price", "tags", "codes"} <= set(renamed)
    found = outputs_of(module, renamed)[0]
    assert torch.equal(torch.tensor(found), torch.tensor(outputs_of(module, own)[0]))


def test_inspect_says_what_it_guessed(zoo):
    (model,) = [m for m in models(zoo) if m.said["name"] == "canned_dnn"]
    feeds = {feed.name: feed for feed in find_interface(read_graph(model.meta)).feeds}
    assert feeds["IteratorGetNext:12"].feature == "stats" and feeds["IteratorGetNext:12"].guessed
    assert feeds["IteratorGetNext:7"].feature is None


def test_a_public_graph_with_transformations_of_its_own_has_its_features_names():
    meta = shared("models", "criteo_tf_tile", "model.ckpt-40000.meta")
    names = delivered_names(read_graph(str(meta)))
    assert [name.name for _, name in sorted(names.items())] == [
        "alcohol", "chlorides", "citric_acid", "density", "fixed_acidity", "free_sulfur_dioxide",
        "pH", "residual_sugar", "sulphates", "total_sulfur_dioxide", "volatile_acidity",
    ]  # fmt: skip
