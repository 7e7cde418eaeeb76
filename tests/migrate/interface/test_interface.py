"""A graph's inputs and likely outputs are listed, by what reads them and by its losses."""

import json
import pathlib
import sys

import pytest

from migrate.graph.interface import find_interface
from migrate.graph.metagraph import read_graph
from semisync.cli import main
from tests.support.require import shared, tf1_python
from tests.support.written import written


@pytest.fixture(scope="module", params=["TensorFlow 2", "TensorFlow 1"])
def folder(request):
    """What write_graphs writes with each TensorFlow."""
    python = sys.executable if request.param == "TensorFlow 2" else tf1_python()
    return written(python, pathlib.Path(__file__).with_name("write_graphs.py"))


def interface(folder, name):
    return find_interface(read_graph(str(folder / f"{name}.meta")))


def outputs(found):
    return [(one.tensor, one.what) for one in found.outputs]


def test_placeholders_say_what_they_take_and_what_reads_them(folder):
    feeds = {feed.name: feed for feed in interface(folder, "sigmoid").feeds}
    assert list(feeds) == ["user:0", "price:0", "label:0", "unused:0"]
    assert (feeds["user:0"].dtype, feeds["user:0"].shape) == ("int64", (None,))
    assert feeds["user:0"].read_by[0] == "users"
    assert feeds["price:0"].read_by == ("kernel",)
    assert feeds["label:0"].labels_of == ("loss/Log1p",)
    assert (feeds["unused:0"].dtype, feeds["unused:0"].shape) == ("bool", ())
    assert not feeds["unused:0"].read_by


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sigmoid", [("logits:0", "logits"), ("click:0", "probability")]),
        ("log_loss", [("logits:0", "logits"), ("click:0", "probability")]),
        ("logistic", [("logits:0", "logits")]),
        ("squared", [("logits:0", "prediction")]),
        ("served", [("logits:0", "logits"), ("click:0", "probability")]),
        ("iterator", [("logits:0", "logits")]),
        ("queue", [("logits:0", "logits"), ("click:0", "probability")]),
        ("examples", [("score:0", "end")]),
    ],
)
def test_outputs_are_known_by_the_loss_or_a_sigmoid_that_ends_the_model(folder, name, expected):
    assert outputs(interface(folder, name)) == expected


@pytest.mark.parametrize("name", ["sigmoid", "log_loss", "logistic", "squared"])
def test_what_a_loss_compares_with_is_a_label_and_not_needed_to_score(folder, name):
    found = interface(folder, name)
    label = next(feed for feed in found.feeds if feed.name == "label:0")
    assert label.labels_of
    assert [feed.name for feed in found.needed("logits:0")] == ["user:0", "price:0"]


def test_iterators_and_queues_have_an_input_for_each_output(folder):
    feeds = interface(folder, "iterator").feeds
    assert [(one.name, one.kind, one.dtype) for one in feeds] == [
        ("IteratorGetNext:0", "iterator", "int32"),
        ("IteratorGetNext:1", "iterator", "float32"),
        ("IteratorGetNext:2", "iterator", "float32"),
    ]
    feeds = interface(folder, "queue").feeds
    assert [(one.name, one.kind, one.shape) for one in feeds] == [
        ("fifo_queue_DequeueMany:0", "queue", (4,)),
        ("fifo_queue_DequeueMany:1", "queue", (4,)),
    ]


def test_serialized_examples_list_their_features(folder):
    feeds = {feed.name: feed for feed in interface(folder, "examples").feeds}
    assert list(feeds) == ["serialized:0", "more_tags"]
    assert sorted((one.name, one.dtype, one.sparse) for one in feeds["serialized:0"].features) == [
        ("price", "float32", False),
        ("tags", "string", True),
        ("user", "int64", False),
    ]
    assert feeds["more_tags"].kind == "sparse"
    assert feeds["more_tags"].read_by == ("tags",)


def test_the_command_prints_a_call_of_score(folder, capsys):
    path = folder / "sigmoid.meta"
    assert main(["inspect", str(path), "--graph"]) == 0
    *_, call, _, model = capsys.readouterr().out.splitlines()
    assert call.strip() == (
        f"semisync score DATA --checkpoint {folder / 'sigmoid'} --input COLUMN=user:0 "
        "--input COLUMN=price:0 --output logits:0 --sigmoid --out scores.parquet"
    )
    refused = f"there is no checkpoint {folder / 'sigmoid'}"  # the graph alone was written
    assert model.startswith(f"semisync convert --model does not write the model: {refused}")
    assert main(["inspect", str(path), "--graph", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["schema"] == "semisync.graph/1"
    assert (report["model"]["outputs"], report["model"]["unknown_ops"]) == (["logits:0"], {})
    assert report["model"]["reason"].startswith(refused)
    assert report["outputs"][0]["tensor"] == "logits:0"
    assert report["inputs"][2]["labels_of"] == ["loss/Log1p"]


def test_the_scores_of_a_softmax_are_columns_and_get_no_sigmoid(capsys):
    assert main(["inspect", f"{shared('models')}/haiy_dist_ps/model.ckpt-504", "--graph"]) == 0
    (call,) = [one for one in capsys.readouterr().out.splitlines() if "semisync score" in one]
    assert "--output xw_plus_b_1:0 --column N" in call
    assert "--sigmoid" not in call


@pytest.mark.parametrize(
    ("model", "needed", "output"),
    [
        ("criteo_tf_tile/model.ckpt-40000", 11, ("dense/Sigmoid:0", "logits")),
        ("haiy_dist_ps/model.ckpt-504", 1, ("xw_plus_b_1:0", "logits")),
        ("joonyoung_dist_2shards/model.ckpt-0", 1, ("local/dense_2/BiasAdd:0", "logits")),
        ("movie_recommender_brickhoff/save", 8, ("inference/ExpandDims:0", "prediction")),
        ("princewen_ffm/FFM-0", 1, ("Add_190:0", "logits")),
        ("xdl_blaze_model/model.ckpt", 1, ("Add_5:0", "logits")),
        ("tf_session_bundle_v1_v2/half_plus_two_v1/00000123/export", 1, ("Identity:0", "end")),
    ],
)
def test_graphs_of_strangers_are_understood(model, needed, output):
    found = find_interface(read_graph(f"{shared('models') / model}.meta"))
    assert outputs(found)[0] == output
    assert len(found.needed(output[0])) == needed


def test_a_checkpoint_without_a_graph_is_a_sentence(tmp_path, capsys):
    assert main(["inspect", str(tmp_path / "none"), "--graph"]) == 3
    error = capsys.readouterr().err
    assert "none has no graph: there is no " in error
    assert error.count("\n") == 1
