"""A converted directory scores raw files by its own model.py as TensorFlow scores them."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from migrate.runtime import Input, columns
from migrate.scoring.module_inputs import ModuleInputs
from semisync.cli import main
from semisync.common.errors import UsageError
from tests.model.conftest import zoo  # noqa: F401 (a fixture)
from tests.model.zoo import log
from tests.model.zoo.read import models
from tests.scoring import zoo_rows
from tests.support.require import forked_tensorflow, tf1_python

ABSOLUTE = 2e-6  # of logits, float32


@pytest.fixture(scope="module")
def model_of(zoo):  # noqa: F811
    return {model.said["name"]: model for model in models(zoo)}.__getitem__


@pytest.fixture(scope="module")
def wide_and_deep(model_of, tmp_path_factory):
    """The options that score it, whose inputs are strings, ids, a flag and a rate."""
    return zoo_rows.converted(model_of("wide_and_deep"), tmp_path_factory.mktemp("wide") / "out")


def scores(data, out, *options):
    """The column of `semisync score`."""
    assert main(["score", str(data), *options, "--out", str(out)]) == 0
    return pyarrow.parquet.read_table(out)["score"].to_numpy()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name",
    [
        "canned_wide_and_deep",  # an iterator's strings, matrices and sparse features
        "words",  # text that the graph splits and looks up
        "input_layer",  # crossed columns, a sparse feature of text
        "sequence_columns",  # a sparse feature, in order
        "din",  # matrices of unknown width, a flag for training
    ],
)
def test_a_converted_model_gives_tensorflows_scores(model_of, tmp_path, name):
    model, data = model_of(name), tmp_path / "rows.parquet"
    zoo_rows.write(model, data)
    options = zoo_rows.converted(model, tmp_path / "converted")
    found = scores(data, tmp_path / "out.parquet", *options, "--batch-size", "17")
    expected = next(v for k, v in sorted(model.outputs().items()) if k.endswith("logits"))
    assert np.abs(found - expected.reshape(-1)).max() <= ABSOLUTE


def test_a_sparse_input_may_be_named_by_all_of_its_tensors():
    tensors = ["DeserializeSparse:0", "DeserializeSparse:1", "DeserializeSparse:2"]
    wanted = {"tags": Input("string", [None, None], tensors)}
    for name in ("tags", "DeserializeSparse", ",".join(tensors)):
        (taken,) = ModuleInputs("model.py", wanted, [("words", name, True)], {}).inputs
        assert (taken.column, taken.name, taken.sparse) == ("words", "tags", True)
    with pytest.raises(UsageError, match="has no input 'DeserializeSparse:0,DeserializeSparse:1'"):
        ModuleInputs("model.py", wanted, [("words", ",".join(tensors[:2]), True)], {})


def test_missing_values_of_a_text_file_are_the_same_on_both_sides(
    model_of, wide_and_deep, tmp_path
):
    model = model_of("wide_and_deep")
    random = np.random.default_rng(0)
    rows = log.draw(200, seed=9)
    missing = {name: random.random(200) < 0.3 for name in ("age", "city", "hour")}
    table = pa.table(
        {
            one["feature"]: pa.array(
                rows[one["feature"]].astype(str) if one["dtype"] != "string" else
                [text.decode() for text in rows[one["feature"]]],
                mask=missing.get(one["feature"]),
            )
            for one in model.said["inputs"]
        }
    )  # fmt: skip
    data = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(table, data)
    fills = ["--fill", "age=31.5", "--fill", "city=", "--fill", "h*=-1", "--sigmoid"]
    found = scores(data, tmp_path / "torch", *wide_and_deep, *fills)
    options = zoo_rows.tensorflow(model, forked_tensorflow(tf1_python()))
    expected = scores(data, tmp_path / "tensorflow", *options, *fills)
    assert np.ptp(expected) > 0.05
    assert np.abs(found - expected).max() <= ABSOLUTE
    both = [pyarrow.parquet.read_table(tmp_path / name) for name in ("torch", "tensorflow")]
    assert both[0].schema.names == both[1].schema.names == ["row", "score", "logit"]


@pytest.mark.long
def test_what_a_graph_parses_out_of_examples_comes_from_columns(model_of, tmp_path):
    """TensorFlow gets Examples, which lack what is missing, torch the default by --fill."""
    model = model_of("parse_example")
    rows, names = log.draw(48, seed=5, odd=True), ["age", "stats", "city", "device", "tags"]
    table = pa.table({name: _as_lists(rows[name]) for name in [*names, "tag_ids", "tag_scores"]})
    city = pa.array([text or None for text in rows["city"]], pa.binary())
    assert city.null_count
    data = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(table.set_column(2, "city", city), data)
    options = zoo_rows.converted(model, tmp_path / "converted")
    found = scores(data, tmp_path / "torch", *options, "--fill", "city=")
    tensor = model.said["outputs"]["logits"]
    python = forked_tensorflow(tf1_python())
    options = ["--checkpoint", model.prefix, "--tf-python", python, "--output", tensor]
    options += [text for name in table.column_names for text in ("--input", name)]
    expected = scores(data, tmp_path / "tensorflow", *options, "--examples", "serialized")
    assert np.abs(found - expected).max() <= ABSOLUTE


def _as_lists(values):
    many = isinstance(values, list) or values.ndim > 1
    return pa.array([one.tolist() if many else one for one in values])


def test_a_graph_of_a_fixed_batch_gets_as_many_rows(graphs, tmp_path):
    out = str(tmp_path / "out")
    arguments = ["convert", str(graphs.folder / "fixed"), out, "--model", "--output", "logits"]
    assert main(arguments) == 0
    found = scores(graphs.data, tmp_path / "scores", "--converted", out)
    assert np.abs(found - graphs.expected["fixed"].reshape(-1)).max() <= ABSOLUTE


def test_the_file_says_which_model_scored_it(wide_and_deep, model_of, tmp_path):
    zoo_rows.write(model_of("wide_and_deep"), tmp_path / "rows.parquet")
    scores(tmp_path / "rows.parquet", tmp_path / "out", *wide_and_deep)
    metadata = pyarrow.parquet.read_metadata(tmp_path / "out").metadata[b"semisync.score"]
    about = json.loads(metadata)["model"]
    assert about["kind"] == "TorchRec"
    hashed = {re.sub(".*/", "", file["path"]) for file in about["files"]}
    assert {"manifest.json", "model.py"} <= hashed
    assert {"torch", "python"} <= set(about["versions"])


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--input", "a=b"], "has no input 'b' for --input; it has: "),
        (["--sparse", "city"], "the input 'city' is not sparse; --input names it"),
        (["--input", "c=city", "--input", "d=city:0"], "--input names the input 'city' twice"),
        (["--feed", 'city="Bergen"', "--input", "city"], "has both a column and a value of"),
        (["--feed", 'user="Ada"'], "the input 'user' takes int64, not 'Ada'"),
        (["--output", "probabilities"], "gives no output 'probabilities' but: logits:0; "),
        (["--input", "absent=city"], "--input COLUMN=city names another column"),
        (["--input", "city=user"], "column 'city' in row 1 is 'Paris'; int64 is expected"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_model_is_one_sentence(
    wide_and_deep, model_of, tmp_path, capsys, more, sentence
):
    zoo_rows.write(model_of("wide_and_deep"), tmp_path / "rows.parquet")
    arguments = ["score", str(tmp_path / "rows.parquet"), *wide_and_deep, *more]
    assert main([*arguments, "--out", str(tmp_path / "out.parquet")]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out.parquet").exists()


def test_a_rate_that_is_not_fed_is_named(wide_and_deep, tmp_path, capsys):
    options = [text for text in wide_and_deep if text not in ("--feed", "keep_prob:0=1.0")]
    assert main(["score", "d.parquet", *options, "--out", str(tmp_path / "out")]) == 3
    assert "one value for all rows; give it with --feed keep_prob=VALUE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("return logits", "return logit", r"failed in .*/model.py, line \d+: NameError: "),
        ("INPUTS = {", "FEATURES = {", "model.py has no INPUTS; convert the model again"),
        ("return logits", "return logits[:7]", r"output is \[7, 1\] for 48 rows"),
    ],
)
def test_a_model_that_was_edited_wrongly_is_one_sentence(
    model_of, tmp_path, capsys, old, new, sentence
):
    model = model_of("sequence_columns")
    zoo_rows.write(model, tmp_path / "rows.parquet")
    options = zoo_rows.converted(model, tmp_path / "converted")
    source = tmp_path / "converted" / "model.py"
    text = re.sub(r"return \w+\n\n\ndef load", "return logits\n\n\ndef load", source.read_text())
    last = re.search(r"return (\w+)\n\n\ndef load", source.read_text()).group(1)
    text = text.replace("return logits", f"logits = {last}\n        return logits")
    source.write_text(text.replace(old, new))
    data = str(tmp_path / "rows.parquet")
    assert main(["score", data, *options, "--out", str(tmp_path / "out")]) == 3
    error = capsys.readouterr().err
    assert re.search(sentence, error), error


def test_a_directory_without_model_py_says_how_to_get_one(tmp_path, capsys):
    (tmp_path / "manifest.json").write_text("{}")
    arguments = ["--converted", str(tmp_path), "--out", str(tmp_path / "out")]
    assert main(["score", "d.parquet", *arguments]) == 3
    assert "has no model.py; `semisync convert --model` writes one" in capsys.readouterr().err


def test_text_and_lists_become_what_a_module_takes():
    text = columns.Input("string", [None, 2], ["t:0"])
    two = pa.FixedSizeListArray.from_arrays(pa.array([b"a", b"", b"\xff", b"d"]), 2)
    found = columns.dense("t", text, two)
    assert found.shape == (2, 2)
    assert found.numpy().tolist() == [[b"a", b""], [b"\xff", b"d"]]
    tags = columns.Input("string", [None, None], ["i:0", "v:0", "s:0"])
    indices, values, shape = columns.sparse(
        "tags", tags, pa.array([b"x", b"y", b"z"]), np.array([0, 2, 0, 1])
    )
    assert indices.tolist() == [[1, 0], [1, 1], [3, 0]]
    assert values.numpy().tolist() == [b"x", b"y", b"z"]
    assert shape.tolist() == [4, 2]
