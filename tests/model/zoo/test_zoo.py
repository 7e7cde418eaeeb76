"""Every model of the zoo is written whole, by either TensorFlow, and is worth comparing with."""

import json
import pathlib
import subprocess

import numpy as np
import pytest

import migrate
from tests.model.zoo.read import Written, models
from tests.model.zoo.registry import MODELS, OF_2
from tests.support.require import ROOT, environment, forked_tensorflow


@pytest.fixture(scope="session", params=["zoo", "zoo_tf2"])
def either(request):
    """The models that each TensorFlow wrote, in turn."""
    return models(request.getfixturevalue(request.param))


@pytest.mark.again
def test_each_tensorflow_writes_its_models(zoo, zoo_tf2):
    ours, theirs = ({one.said["name"] for one in models(each)} for each in (zoo, zoo_tf2))
    assert ours == set(MODELS)
    assert theirs == set(OF_2)


def test_outputs_are_finite_and_differ_from_row_to_row(either):
    for one in either:
        rows = {len(value) for value in one.outputs().values()}
        assert rows == {48}, one.said["name"]
        for key, value in one.outputs().items():
            assert np.isfinite(value).all(), (one.said["name"], key)
            assert len(np.unique(value, axis=0)) > 1, (one.said["name"], key)


def test_every_trainable_variable_moves_and_stays_finite(either):
    for one in either:
        first, (*_, (_, _, last)) = one.state(0), one.steps()
        assert set(one.said["trainable"]) <= set(first), one.said["name"]
        for name in one.said["trainable"]:
            assert np.isfinite(last[name]).all(), (one.said["name"], name)
            assert not np.array_equal(first[name], last[name]), (one.said["name"], name)
        assert all(np.isfinite(loss) for _, loss, _ in one.steps()), one.said["name"]


def test_the_steps_start_from_the_checkpoint(either):
    for one in either:
        with migrate.open_checkpoint(one.prefix) as checkpoint:
            state = one.state(0)
            assert set(state) == set(checkpoint), one.said["name"]
            for name, value in state.items():
                assert np.array_equal(checkpoint.read(name), value), (one.said["name"], name)


def test_every_feed_point_and_output_is_in_the_saved_graph(either):
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

    for one in either:
        meta = MetaGraphDef.FromString(pathlib.Path(one.meta).read_bytes())
        nodes = {node.name for node in meta.graph_def.node}
        said = one.said
        tensors = list(said["outputs"].values()) + said["drawn"] + [said["loss"]]
        for fed in said["inputs"] + said["labels"]:
            tensors += fed["tensors"].values() if fed["sparse"] else [fed["tensor"]]
        tensors += [flag["tensor"] for flag in said["flags"]]
        assert {tensor.split(":")[0] for tensor in tensors} <= nodes, said["name"]


def test_the_log_has_what_kernels_differ_in(zoo):
    fed = Written(zoo / "canned_linear").by_feature(Written(zoo / "canned_linear").inputs())
    assert b"" in fed["city"]
    assert b"" in fed["words"]
    assert -1 in fed["codes"]
    assert np.isnan(fed["heat"]).any()
    assert len(np.unique(fed["tags"]["indices"][:, 0])) < fed["tags"]["shape"][0]  # empty lists
    assert (fed["tag_scores"]["values"] <= 0).any()


def test_saved_models_stand_beside_their_outputs(zoo):
    found = {}
    for one in models(zoo):
        for way, said in one.said["exports"].items():
            found[way] = one.said["name"]
            folder = one.folder / "exports"
            assert (folder / way / "saved_model.pb").exists()
            with np.load(folder / f"{way}_outputs.npz", allow_pickle=True) as outputs:
                assert set(outputs) == set(said["outputs"])
                assert np.isfinite(outputs["logits"]).all()
    assert found == {"parsed": "canned_linear", "raw": "canned_dnn", "simple": "wide_and_deep"}


def test_a_model_is_written_alone_with_as_many_steps_as_asked_for(tmp_path):
    command = [forked_tensorflow(), "-W", "ignore", "-m", "tests.model.zoo.write"]
    subprocess.run(
        [*command, "fm", str(tmp_path), "--steps", "7"], check=True, cwd=ROOT, env=environment()
    )
    one = Written(tmp_path / "fm")
    assert len(one.steps()) == 7
    assert json.loads((tmp_path / "fm" / "model.json").read_text())["name"] == "fm"
