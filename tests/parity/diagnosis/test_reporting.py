"""The suspects reach the terminal, report.json and report.html; models and ids the command."""

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import parity
from parity.report.schema import schema
from parity.report.words.details import suspects_in_words
from parity.result import SYMPTOM, Suspect
from semisync.cli import main
from tests.parity.diagnosis.log import TEST
from tests.parity.kinds import comparison


@pytest.fixture(scope="module")
def folder(bench, tensorflow_models, tmp_path_factory):
    """scores.parquet with TensorFlow's models' scores, and columns of ids."""
    folder = tmp_path_factory.mktemp("scores")
    columns = {"id": np.arange(TEST), "y": bench.test.label, "user": bench.test.user}
    columns["tags"] = pa.ListArray.from_arrays(
        np.concatenate([[0], np.cumsum(bench.test.lengths)]), bench.test.tags
    )
    for name in ("baseline", "summed", "zeroed"):
        columns[name] = np.load(tensorflow_models / f"{name}.npy")
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, folder / "scores.parquet")
    pyarrow.parquet.write_table(
        table.select(["id", "zeroed"]).take(np.random.default_rng(0).permutation(TEST)),
        folder / "zeroed.parquet",
    )
    return folder


@pytest.fixture
def command(folder, tmp_path, monkeypatch, capsys):
    """Runs `semisync parity`; returns exit code, lines of stdout, stderr."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        columns = ["--label", "y", "--baseline-score", "baseline"]
        code = main(["parity", *arguments, *columns, "--out", str(tmp_path / "out")])
        out, err = capsys.readouterr()
        return code, [line.strip() for line in out.splitlines()], err

    return run


def suspects(tmp_path):
    return json.loads((tmp_path / "out" / "report.json").read_text())["diagnosis"]


def models(folder, candidate):
    return ["--baseline-model", f"{folder}/baseline", "--candidate-model", f"{folder}/{candidate}"]


def test_bags_and_models_name_the_pooling(command, tensorflow_models, tmp_path):
    arguments = ["scores.parquet", "--candidate-score", "summed", "--ids", "tags"]
    code, lines, err = command(*arguments, *models(tensorflow_models, "summed"))
    assert (code, err) == (1, "")
    line = next(line for line in lines if line.startswith("Suspect 1: "))
    assert line == (
        "Suspect 1: pooling of ids, 100% of the difference (shown by the rows). Table tags is "
        "pooled by mean in the baseline and by sum in the candidate."
    )
    [found] = suspects(tmp_path)
    assert set(found) == {"name", "score", "evidence", "remedy", "basis"}
    assert (found["name"], found["basis"], len(found["evidence"])) == ("pooling of ids", "rows", 2)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("What to do") < page.index("Why they may differ") < page.index("Both models")
    assert "Table tags is pooled by mean" in page
    assert found["remedy"].split(":")[0] in page
    assert "Suspect 1: pooling of ids" in (tmp_path / "out" / "report.md").read_text()


def test_the_schema_knows_suspects():
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    suspect = Suspect("ids", 0.5, ("a",), "b", SYMPTOM)
    for score, valid in ((0.5, True), (1.5, False)):
        found = dataclasses.replace(
            comparison("plain"), diagnosis=(suspect._replace(score=score),)
        ).to_json()
        errors = list(jsonschema.Draft202012Validator(schema()).iter_errors(found))
        assert (not errors) == valid


def test_ids_of_two_files_are_joined_and_may_name_their_table(command, tensorflow_models, tmp_path):
    arguments = ["scores.parquet", "zeroed.parquet", "--key", "id", "--candidate-score", "zeroed"]
    code, _, _ = command(*arguments, "--ids", "user=user", *models(tensorflow_models, "zeroed"))
    assert code == 1
    assert (suspects(tmp_path)[0]["name"], suspects(tmp_path)[0]["basis"]) == ("cold ids", "rows")
    assert suspects(tmp_path)[0]["score"] > 0.95


def test_an_equivalent_pair_has_an_empty_list_and_no_section(command, tmp_path):
    code, lines, _ = command("scores.parquet", "--candidate-score", "zeroed", "--margin", "0.5")
    assert code == 0
    assert suspects(tmp_path) == []
    assert not any("Suspect" in line for line in lines)
    assert "Why they may differ" not in (tmp_path / "out" / "report.html").read_text()


def test_beyond_memory_the_models_alone_are_asked(command, tensorflow_models, tmp_path):
    arguments = ["scores.parquet", "--candidate-score", "summed", "--memory", "0.0001"]
    assert command(*arguments, *models(tensorflow_models, "summed"))[0] == 1
    assert [one["name"] for one in suspects(tmp_path)] == ["pooling of ids"]
    code, _, err = command(*arguments, "--ids", "tags")
    assert code == 3
    assert "--ids needs the rows in memory" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--baseline-model", "absent"], "there is no checkpoint"),
        (["--candidate-model", "absent.yaml"], "absent.yaml cannot be read"),
        (["--ids", "nope"], "no column 'nope'"),
        (["--ids", "zeroed"], "holds float; ids are whole numbers or words"),
    ],
)
def test_bad_input_is_one_sentence(command, tmp_path, arguments, sentence):
    code, lines, err = command("scores.parquet", "--candidate-score", "summed", *arguments)
    assert (code, lines) == (3, [])
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_three_suspects_are_named_and_all_are_escaped():
    many = [Suspect(f"<b>{i}</b>", 0.5, ("a & b",), "do <this>", SYMPTOM) for i in range(5)]
    assert len(suspects_in_words(many)) == 3
    page = parity.report_section(dataclasses.replace(comparison("plain"), diagnosis=tuple(many)))
    assert page.count("<li>") == 5
    assert "&lt;b&gt;4&lt;/b&gt;" in page and "<b>" not in page and "<this>" not in page
