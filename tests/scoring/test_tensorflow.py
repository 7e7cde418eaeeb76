"""TensorFlow's models give the very bits of a session of their own, in the order of the rows."""

import json

import numpy as np
import pyarrow.parquet
import pytest

from migrate.scoring.tf_child.scorer import Refused, Scorer
from semisync.cli import main


def score(data, out, *arguments):
    """The table that `semisync score` writes."""
    assert main(["score", str(data), *arguments, "--out", str(out)]) == 0
    return pyarrow.parquet.read_table(out)


def test_a_checkpoint_scores_as_its_training_session_does(models, rows, data, tmp_path):
    out = tmp_path / "scores.parquet"
    kept = ["--key", "id", "--label", "y", "--keep", "user", "--batch-size", "256"]
    found = score(data, out, *models.checkpoint, *kept)
    assert found.column_names == ["id", "y", "user", "score"]
    for name in ("id", "user"):
        assert found[name].to_pylist() == rows[name].to_pylist()
    assert found["y"].to_pylist() == [int(label) for label in rows["y"].to_pylist()]
    assert found["score"].type == "float"
    assert np.array_equal(found["score"], models.expected["logits"])
    about = json.loads(pyarrow.parquet.read_metadata(out).metadata[b"semisync.score"])
    assert about["model"]["kind"] == "checkpoint"
    assert len(about["model"]["sha256"]) == 64
    assert [(file["path"], file["rows"]) for file in about["data"]] == [(data, 600)]
    assert about["model"]["versions"]["tensorflow"].startswith(("1.15", "2."))


def test_a_placeholder_takes_the_column_of_its_name(models, data, rows, tmp_path, capsys):
    place = models.checkpoint.index("--input")
    bare = models.checkpoint[:place] + ["--feed", "is_training=false", "--output", "logits"]
    renamed = str(tmp_path / "renamed.parquet")
    pyarrow.parquet.write_table(
        rows.rename_columns(["id", "y", "user_id", "age", "genres"]), renamed
    )
    found = score(renamed, tmp_path / "scores.parquet", *bare)
    assert np.array_equal(found["score"], models.expected["logits"])
    assert main(["score", data, *bare, "--out", str(tmp_path / "none")]) == 3
    error = capsys.readouterr().err
    assert "has no column 'user_id'; it has: id, y, user, age, genres; --input " in error
    assert error.endswith("--input COLUMN=user_id names another column\n")


def test_what_is_fed_inside_the_graph_needs_no_placeholder_before_it(tf2_models):
    told = {"inputs": [["layer", "concat", False]], "feeds": {"is_training": False}}
    scorer = Scorer(spec(tf2_models, "model.ckpt", **told))
    assert described(scorer) == [("layer", "float32", False)]


def saved(models, name):
    return ["--saved-model", str(models.folder / name), "--tf-python", models.python]


def test_a_saved_model_takes_columns_by_the_names_of_its_signature(tf1_models, data, tmp_path):
    model = saved(tf1_models, "saved")
    found = score(data, tmp_path / "out", *model, "--output", "logits", "--sigmoid")
    assert found.column_names == ["row", "score", "logit"]
    assert found["row"].to_pylist() == list(range(600))
    exact = 1 / (1 + np.exp(-tf1_models.expected["logits"].astype(np.float64)))
    assert np.array_equal(found["score"], exact.astype(np.float32))


def test_serialized_examples_are_built_from_the_columns(tf1_models, rows, tmp_path):
    """A missing age is left out of its Example, where the model has a default for it: 30."""
    ages = [None if age == 30 else age for age in rows["age"].to_pylist()]
    assert None in ages
    data = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(rows.set_column(3, "age", [ages]), data)
    inputs = ["--examples", "examples"]
    inputs += ["--input", "user", "--input", "age", "--input", "genres"]
    found = score(data, tmp_path / "out", *saved(tf1_models, "examples"), *inputs)
    assert np.array_equal(found["score"], tf1_models.expected["logits"])


def spec(models, kind="saved", **changed):
    """What the child is sent for a model of `write_models`."""
    told = {
        "kind": "checkpoint" if kind == "model.ckpt" else "saved_model",
        "path": str(models.folder / kind),
        "tags": ["serve"],
        "signature": "serving_default",
        "meta": str(models.folder / "model.ckpt.meta"),
        "modules": [],
        "inputs": [],
        "examples": None,
        "output": "logits",
        "feeds": {},
    }
    return {**told, **changed}


def described(scorer):
    """(column, dtype, sparse) of each input."""
    return [
        tuple(one.describe()[k] for k in ("column", "dtype", "sparse")) for one in scorer.inputs
    ]


def test_a_saved_model_tells_what_its_sparse_input_takes(tf2_models, rows):
    scorer = Scorer(spec(tf2_models))
    genres = rows["genres"].combine_chunks()
    arrays = {
        "0": rows["age"].to_numpy(),
        "1": genres.flatten().to_numpy(),
        "1/lengths": genres.value_lengths().to_numpy().astype(np.int64),
        "2": rows["user"].to_numpy(),
    }
    assert described(scorer) == [
        ("age", "float32", False),
        ("genres", "int64", True),
        ("user", "int64", False),
    ]
    assert np.array_equal(scorer.score(600, arrays)[:, 0], tf2_models.expected["logits"])


def test_a_saved_model_of_tensorflow_2_is_opened_too(tf2_models, rows):
    scorer = Scorer(spec(tf2_models, "eager", output=None))
    assert described(scorer) == [("age", "float32", False), ("user", "int64", False)]
    arrays = {"0": rows["age"].to_numpy(), "1": rows["user"].to_numpy()}
    assert np.array_equal(scorer.score(600, arrays), tf2_models.expected["eager"])


@pytest.mark.parametrize(
    ("kind", "changed", "sentence"),
    [
        ("saved", {"signature": "predict"}, "no signature 'predict'; there are: serving_default"),
        ("saved", {"output": "click"}, "no output 'click'; it has: logits, probabilities"),
        ("saved", {"output": None}, "name one of the outputs with --output: logits, prob"),
        ("saved", {"inputs": [["a", "b", False]]}, "no input 'b'; it has: age, genres, user"),
        ("saved", {"inputs": [["a", "age", True]]}, "'age' is not a sparse input"),
        ("saved", {"tags": ["train"]}, "MetaGraphDef associated with tags"),
        ("model.ckpt", {"output": "logit"}, "no tensor 'logit:0', did you mean logits"),
        ("model.ckpt", {"output": "user_id"}, "'user_id:0' is int64; scores are floating"),
        ("model.ckpt", {"inputs": [["a", "tags", True]]}, "no tensor 'tags/indices:0'.* genres/in"),
        ("model.ckpt", {"feeds": {"training": False}}, "'training:0', did you mean is_training"),
    ],
)
def test_what_the_model_lacks_is_named_beside_what_it_has(tf2_models, kind, changed, sentence):
    with pytest.raises((Refused, RuntimeError), match=sentence):
        Scorer(spec(tf2_models, kind, **changed))


def test_a_shape_that_does_not_fit_is_refused(tf2_models):
    scorer = Scorer(spec(tf2_models, inputs=[["ages", "age", False]]))
    none = np.zeros(2, np.int64)
    arrays = {"0": np.zeros((2, 3), np.float32), "1": none[:0], "1/lengths": none, "2": none}
    with pytest.raises(Refused, match=r"'age' takes the shape \[\?, 1\], but .* gives \[2, 3\]"):
        scorer.score(2, arrays)


def test_an_input_that_is_not_fed_is_a_sentence_and_no_file(tf1_models, data, tmp_path, capsys):
    arguments = list(tf1_models.checkpoint)
    place = arguments.index("--feed")
    del arguments[place : place + 2]
    out = tmp_path / "out.parquet"
    assert main(["score", data, *arguments, "--out", str(out)]) == 3
    error = capsys.readouterr().err
    assert "one value for all rows; give it with --feed is_training=VALUE" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
