"""Graphs that were made for training are scored as their own sessions do, or refused by name."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate import open_checkpoint
from semisync.cli import main
from tests.support.require import shared

INPUTS = ["--input", "x", "--input", "item"]


@pytest.fixture
def score(tmp_path, capsys):
    """Runs `semisync score`; returns exit code, table or None, stderr."""

    def run(*arguments):
        out = tmp_path / "out.parquet"
        code = main(["score", *arguments, "--out", str(out)])
        table = pyarrow.parquet.read_table(out) if out.exists() else None
        return code, table, capsys.readouterr().err

    return run


@pytest.mark.long
def test_the_last_batch_of_a_fixed_batch_is_padded_and_cut(graphs, score):
    code, table, error = score(*graphs.checkpoint("fixed"), *INPUTS)
    assert (code, error) == (0, "")
    assert np.array_equal(table["score"], graphs.expected["fixed"])


def test_a_graph_that_gives_one_score_for_its_whole_batch_is_refused(graphs, score, tmp_path):
    one_row = tmp_path / "row.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(graphs.data).slice(0, 1), one_row)
    code, _, error = score(str(one_row), *graphs.checkpoint("fixed", "mean")[1:], *INPUTS)
    assert code == 3
    assert "the model's output is [1] for 128 rows; one score per row is expected" in error


def test_a_sparse_input_beside_a_fixed_batch_is_padded_too(graphs, score, tmp_path):
    inputs = ["--input", "x", "--sparse", "item=tags", "--type", "item=int64"]
    values = np.load(graphs.folder / "rows.npz")["item"] % 50
    data = tmp_path / "tags.parquet"
    table = pyarrow.parquet.read_table(graphs.data)
    pyarrow.parquet.write_table(table.set_column(1, "item", [values]), data)
    code, table, error = score(str(data), *graphs.checkpoint("sparse")[1:], *inputs)
    assert (code, error) == (0, "")
    assert np.array_equal(table["score"], graphs.expected["sparse"])


def test_an_iterator_is_fed_by_its_tensors(graphs, score):
    inputs = ["--input", "x=IteratorGetNext:0", "--input", "item=IteratorGetNext:1"]
    code, table, error = score(*graphs.checkpoint("iterator"), *inputs)
    assert (code, error) == (0, "")
    assert np.allclose(table["score"], graphs.expected["iterator"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "inputs", "sentence"),
    [
        (
            "iterator",
            ["--input", "x=IteratorGetNext:0"],
            "takes its rows from an iterator, 'IteratorGetNext'; feed its tensors with --input "
            "COL=TENSOR: IteratorGetNext:1 (int64 [?])",
        ),
        (
            "queue",
            ["--input", "x=items"],
            "takes its rows from a queue, 'fifo_queue_DequeueMany'; feed its tensors with --input "
            "COL=TENSOR: fifo_queue_DequeueMany:0 (float32 [4, 1]), fifo_queue_DequeueMany:1 (int",
        ),
    ],
)
def test_rows_of_the_graphs_own_are_named(graphs, score, name, inputs, sentence):
    code, table, error = score(*graphs.checkpoint(name), *inputs)
    assert (code, table) == (3, None)
    assert sentence in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("meta", ["shapes.meta", "old.meta"])
def test_shapes_and_versions_of_another_tensorflow_do_not_matter(graphs, score, meta):
    more = ["--meta", str(graphs.folder / meta)]
    code, table, error = score(*graphs.checkpoint("shapes"), *INPUTS, *more)
    assert (code, error) == (0, "")
    assert np.allclose(table["score"], graphs.expected["shapes"], rtol=0, atol=1e-6)


def test_nor_do_those_of_a_saved_model(graphs, score):
    saved = ["--saved-model", str(graphs.folder / "saved"), "--tf-python", graphs.python]
    code, table, error = score(graphs.data, *saved)
    assert (code, error) == (0, "")
    assert np.allclose(table["score"], graphs.expected["shapes"], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "output", "kind", "sentence"),
    [
        ("batch", "normal", "batch", "scored in two batches instead of one, by up to "),
        ("chance", "dropped/mul_1", "chance", "scored twice in the same way, by up to "),
        ("moving", "normal", "chance", "or the graph moves BatchNorm's statistics while "),
    ],
)
def test_a_score_that_depends_on_its_batch_is_a_warning(
    graphs, score, tmp_path, name, output, kind, sentence
):
    if name == "chance":
        output = _dropped(graphs)
    code, table, error = score(*graphs.checkpoint(name, output), *INPUTS)
    assert code == 0
    assert error.startswith("semisync score: warning: ")
    assert sentence in error
    metadata = pyarrow.parquet.read_metadata(tmp_path / "out.parquet").metadata
    told = json.loads(metadata[b"semisync.score"])["model"]["instability"]
    assert (told["depends_on"], told["rows"]) == (kind, 300)
    assert told["differ"] > 40
    assert 0.01 < told["largest"] < 100


def _dropped(graphs):
    """The output of the dropout, which each TensorFlow names in its own way."""
    from migrate.graph.metagraph import read_graph

    nodes = read_graph(str(graphs.folder / "chance.meta")).nodes
    return [name for name in nodes if name.startswith("dropped/")][-1]


def test_logits_beyond_a_float32_probability_are_written_too(graphs, score):
    code, table, _ = score(*graphs.checkpoint("shapes"), *INPUTS, "--sigmoid")
    assert code == 0
    assert table.column_names == ["row", "score", "logit"]
    assert np.allclose(table["logit"], graphs.expected["shapes"], rtol=0, atol=1e-6)
    exact = 1 / (1 + np.exp(-table["logit"].to_numpy().astype(np.float64)))
    assert np.array_equal(table["score"], exact.astype(np.float32))


def test_a_directory_names_its_checkpoint(graphs, score):
    """write_graphs saves shapes last."""
    arguments = ["--checkpoint", str(graphs.folder), "--tf-python", graphs.python]
    code, table, error = score(graphs.data, *arguments, *INPUTS, "--output", "logits")
    assert (code, error) == (0, "")
    assert np.allclose(table["score"], graphs.expected["shapes"], rtol=0, atol=1e-6)


def test_a_directory_that_names_none_lists_its_checkpoints(score, tmp_path):
    for name in ("model.ckpt-1", "model.ckpt-20"):
        (tmp_path / f"{name}.index").write_bytes(b"")
    code, _, error = score("d.parquet", "--checkpoint", str(tmp_path), *INPUTS, "--output", "o")
    assert code == 3
    assert all(f"{tmp_path}/model.ckpt-{step}" in error for step in (1, 20))
    assert error.count("\n") == 1


def test_a_directory_of_a_saved_model_is_one(graphs, score):
    code, _, error = score(graphs.data, "--checkpoint", str(graphs.folder / "saved"), *INPUTS)
    assert code == 3
    assert "saved is a SavedModel; --saved-model names it" in error


def test_a_call_without_tensors_gets_their_names(graphs, score):
    checkpoint = graphs.checkpoint("fixed")[:-2]
    code, _, error = score(*checkpoint)
    assert code == 3
    assert "--checkpoint needs --output, the tensor that scores: mean:0 (nothing" in error


@pytest.mark.parametrize("version", ["half_plus_two_v1", "half_plus_two_ckpt_v2"])
def test_a_graph_of_examples_from_before_1_0_is_scored_by_any_tensorflow(
    graphs, score, tmp_path, version
):
    """The half of x and two; its checkpoint is in either format, V1 in shards."""
    prefix = shared("models", "tf_session_bundle_v1_v2") / version / "00000123" / "export"
    model = ["--checkpoint", str(prefix), "--tf-python", graphs.python, "--output", "Identity"]
    code, table, error = score(graphs.data, *model, "--examples", "tf_example", "--input", "x")
    assert (code, error) == (0, "")
    x = np.load(graphs.folder / "rows.npz")["x"]
    assert np.array_equal(table["score"], x * np.float32(0.5) + 2)


def test_a_checkpoint_without_its_data_is_not_whole(score, tmp_path):
    (tmp_path / "model.index").write_bytes(b"")
    model = ["--checkpoint", str(tmp_path / "model"), "--input", "x", "--output", "o"]
    code, _, error = score("d.parquet", *model)
    assert code == 3
    assert "model is not whole: it has an .index, and no .data file beside it" in error


def test_a_strangers_graph_scores_as_its_own_session_does(score, tmp_path):
    """haiy_dist_ps: a network for digits on a parameter server, of TensorFlow 1.2."""
    prefix = str(shared("models", "haiy_dist_ps") / "model.ckpt-504")
    random = np.random.default_rng(0)
    pixels = random.random((50, 784)).astype(np.float32)
    data = tmp_path / "pixels.parquet"
    pyarrow.parquet.write_table(pa.table({"pixels": list(pixels)}), data)
    model = ["--checkpoint", prefix, "--input", "pixels=Placeholder:0"]
    code, table, error = score(str(data), *model, "--output", "xw_plus_b_1", "--column=3")
    assert (code, error) == (0, "")
    with open_checkpoint(prefix) as found:
        weights = [found.read(name) for name in ("hid_w", "hid_b", "sm_w", "sm_b")]
    hidden = np.maximum(pixels @ weights[0] + weights[1], 0)
    assert np.allclose(table["score"], (hidden @ weights[2] + weights[3])[:, 3], rtol=1e-4)
