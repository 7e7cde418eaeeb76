"""features.json: the steps from raw features to ids, applied by a second, small interpreter."""

import contextlib
import json

import numpy as np
import pytest
import torch

import migrate
from migrate import runtime
from migrate.runtime import Strings
from semisync import cli
from tests.model.features import features
from tests.model.zoo.read import models

tf = pytest.importorskip("tensorflow").compat.v1

MODELS = ["canned_dnn", "canned_linear", "canned_wide_and_deep", "input_layer", "words"]


def apply(steps, inputs, assets):
    """(row of each value, values) after the steps."""
    rows, values = None, None
    for step in steps:
        kept = None
        if step["op"] == "input":
            rows, values = _given(inputs[step["name"]])
        elif step["op"] == "drop":
            kept = values != step["value"]
        elif step["op"] == "as_string":
            values = runtime.as_string(values)
        elif step["op"] == "hash_bucket":
            values = runtime.string_to_hash_bucket_fast(values, step["buckets"])
        elif step["op"] == "vocabulary":
            values = _vocabulary(step, values, assets)
        elif step["op"] == "bucketize":
            values = runtime.bucketize(values, step["boundaries"]).long()
        elif step["op"] == "by_column":
            values = values + step["step"] * (torch.arange(len(values)) % step["columns"])
        elif step["op"] == "default":
            known = (values >= 0) & (values < step["buckets"])
            values = torch.where(known, values, step["default"])
        elif step["op"] == "cross":
            rows, values = _cross(step, inputs, assets)
        elif step["op"] == "unique":
            first = [values.tolist().index(one) for one in dict.fromkeys(values.tolist())]
            rows, values = rows[first], values[first]
        else:
            assert step["op"] == "cast", step
            values = values.to(getattr(torch, step["dtype"]))
        if kept is not None:
            rows, values = rows[kept], values[kept]
    return rows, values


def _given(given):
    if isinstance(given, list):
        return given[0][:, 0], given[1]
    width = int(np.prod(given.shape[1:], dtype=int))
    return torch.arange(given.shape[0]).repeat_interleave(width), given.reshape([-1])


def _vocabulary(step, values, assets):
    if "file" in step:
        columns = (step["key_index"], step["value_index"], step["size"])
        path = str(assets / step["file"])
        table = runtime.LookupTable.from_text_file(path, *columns, default=step["default"])
    else:
        table = runtime.LookupTable(step["keys"], step["values"], step["default"])
    found = table.find(values)
    if "oov_buckets" not in step:
        return found
    text = values if isinstance(values, Strings) else runtime.as_string(values)
    beyond = runtime.string_to_hash_bucket_fast(text, step["oov_buckets"]) + len(table)
    return torch.where(found == step["default"], beyond, found)


def _cross(step, inputs, assets):
    columns = [apply(steps, inputs, assets) for steps in step["columns"]]
    count = 1 + max(int(rows.max()) for rows, _ in columns if len(rows))
    indices = [torch.stack([rows, torch.arange(len(rows))], 1) for rows, _ in columns]
    shapes = [torch.tensor([count, len(rows)]) for rows, _ in columns]
    values = [values for _, values in columns]
    hashed = (True, step["buckets"], step["hash_key"])
    where, crossed, _ = runtime.sparse_cross(indices, values, shapes, [], *hashed)
    return where[:, 0], crossed


def kept(lookup, inputs, assets):
    """The ids, and the weights if there are any, after `keep`."""
    _, ids = apply(lookup["ids"], inputs, assets)
    weights = apply(lookup["weights"], inputs, assets)[1] if "weights" in lookup else None
    for keep in lookup.get("keep", ()):
        mask = {"ids >= 0": ids >= 0, "weights > 0": weights is not None and weights > 0}[keep]
        ids, weights = ids[mask], weights if weights is None else weights[mask]
    return ids


def described(zoo, name):
    """(model of the zoo, its features.json, its inputs)."""
    (model,) = [model for model in models(zoo) if model.said["name"] == name]
    outputs = list(model.said["outputs"].values())
    module = migrate.load_model(model.prefix, output=outputs)
    given = features(model)
    names = module.tensorflow_inputs
    inputs = {
        next((name for name, one in names.items() if key in one.own_names), key): value
        for key, value in given.items()
    }
    return model, module.tensorflow_features, inputs


@pytest.fixture(scope="module", params=MODELS)
def subject(request, zoo):
    """Each of the models, `described`."""
    return described(zoo, request.param)


@contextlib.contextmanager
def session_of(model):
    """TensorFlow's own graph of a model in a session, and what the recorded inputs feed."""
    points = {}
    for name, value in model.inputs().items():
        scope, _, part = name.rpartition("/")
        one = next(one for one in model.said["inputs"] if one["point"] in (name, scope))
        own = one["tensors"][part] if one["sparse"] else one["tensor"]
        points[own] = value
    for flag in model.said["flags"]:
        points[flag["tensor"]] = flag["evaluation"]
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.import_meta_graph(model.meta).restore(session, model.prefix)
        session.run(tf.get_collection(tf.GraphKeys.TABLE_INITIALIZERS))
        yield session, points


def ids_of_tensorflow(model, tensors):
    """What TensorFlow gives for the recorded inputs."""
    with session_of(model) as (session, points):
        found = {}
        for tensor in tensors:
            node = tf.get_default_graph().get_operation_by_name(tensor.partition(":")[0])
            empty = node.outputs[2] if node.type == "SparseFillEmptyRows" else tf.constant([])
            values, rows, none = session.run([tensor, node.outputs[0], empty], points)
            filled = none[rows[:, 0]] if none.size else np.zeros(len(values), bool)
            found[tensor] = values[~filled]
        return found


@pytest.mark.few(1)
def test_the_steps_give_the_ids_that_tensorflow_looks_up(subject):
    model, said, inputs = subject
    assert said["schema"] == "semisync.features/1"
    expected = ids_of_tensorflow(model, [one["tensor"] for one in said["lookups"]])
    assert said["lookups"]
    for lookup in said["lookups"]:
        found = kept(lookup, inputs, model.folder).numpy()
        assert np.array_equal(found, expected[lookup["tensor"]]), lookup


def test_an_indicator_of_weighted_ids_sums_their_weights(zoo):
    model, said, inputs = described(zoo, "canned_dnn")
    (one,) = [one for one in said["one_hots"] if "weights" in one]
    assert one["keep"] == ["ids >= 0"]
    rows, ids = apply(one["ids"], inputs, model.folder)
    weights = apply(one["weights"], inputs, model.folder)[1][ids >= 0]
    with session_of(model) as (session, points):
        graph = session.graph
        (summed,) = [node for node in graph.get_operations() if node.type == "ScatterNd"]
        expected = session.run(summed.outputs[0], points)
    places = (rows[ids >= 0], ids[ids >= 0])
    found = torch.zeros(len(expected), one["depth"]).index_put(places, weights, accumulate=True)
    assert found.shape == expected.shape
    assert np.allclose(found.numpy(), expected, atol=1e-6)
    assert not any("sparse_reorder" in one["expression"] for one in said["computed"])


def test_what_is_no_step_is_listed_with_its_expression(zoo):
    (model,) = [model for model in models(zoo) if model.said["name"] == "canned_dnn"]
    described = migrate.load_model(model.prefix).tensorflow_features
    computed = {tuple(one["reads"]): one["expression"] for one in described["computed"]}
    assert computed["price",] == "(torch.log(price.unsqueeze(-1)) - 0.1) / 1.3"
    assert "stats" in computed["stats",]
    uses = described["lookups"] + described["one_hots"] + described["computed"]
    assert {name for name in described["inputs"] if f'"{name}"' in json.dumps(uses)} == set(
        described["inputs"]
    )


@pytest.mark.long
def test_convert_writes_it_beside_the_model(zoo, tmp_path):
    (model,) = [model for model in models(zoo) if model.said["name"] == "canned_linear"]
    out = tmp_path / "out"
    assert cli.main(["convert", model.prefix, str(out), "--model"]) == 0
    written = json.loads((out / "features.json").read_text())
    assert written == migrate.load_model(model.prefix).tensorflow_features
    files = {step["file"] for one in written["lookups"] for step in one["ids"] if "file" in step}
    assert files == {"places.txt"} and (out / "assets" / "places.txt").exists()


def test_a_filter_by_another_feature_is_no_step(tmp_path):
    prefix = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        item = tf.placeholder(tf.int64, [None], name="item")
        age = tf.placeholder(tf.int64, [None], name="age")
        kept = tf.gather(item, tf.reshape(tf.where(age >= 0), [-1]))
        table = tf.get_variable("items", [9, 4])
        tf.identity(tf.nn.embedding_lookup(table, kept), name="rows")
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, prefix)
    described = migrate.load_model(prefix, output="rows").tensorflow_features
    assert not described["lookups"]
    assert [one["reads"] for one in described["computed"] if "table" in one] == [["age", "item"]]
