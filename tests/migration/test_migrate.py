"""`semisync migrate`: one command, one report, a verdict that does not pretend."""

import json
import os
import pathlib
import re
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import migrate as migrate_package
from migrate.behaviour import training
from migrate.behaviour.report import StepDifference, TrainingReport
from migrate.targets.work_directory import locked
from semisync.cli import main
from semisync.common import exit_codes
from semisync.migration import conversion
from semisync.migration.settings import Settings
from tests.parity import browser
from tests.support.require import fastest_tensorflow, forked_tensorflow
from tests.support.written import semisync_sources, written

WRITER = pathlib.Path(__file__).with_name("write_job.py")


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A folder of its own with the job's checkpoints and its rows as Parquet."""
    folder = tmp_path_factory.mktemp("job") / "job"
    shutil.copytree(written(fastest_tensorflow(), WRITER), folder)
    rows = dict(np.load(folder / "rows.npz", allow_pickle=True))
    rows["id"] = np.arange(len(rows["item"]))[::-1]
    pyarrow.parquet.write_table(pa.table(rows), folder / "rows.parquet")
    return folder


@pytest.fixture
def wrapped_job(tmp_path):
    """A folder of its own: the checkpoint directory of the same job, wrapped by semisync."""
    options = ["wrapped", semisync_sources()]
    folder = shutil.copytree(written(fastest_tensorflow(), WRITER, *options), tmp_path / "wrapped")
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-15"')
    return folder


def migrate(job, out, *more, checkpoint="model.ckpt", python=None):
    """The exit code; the report stands in `out`."""
    arguments = ["migrate", str(job / checkpoint), "--data", str(job / "rows.parquet")]
    arguments += ["--label", "clicked", "--key", "id", "--out", str(out)]
    return main([*arguments, "--tf-python", python or forked_tensorflow(), *more])


def report(out):
    return json.loads((out / "report.json").read_text())


def states(out):
    return {part["name"]: part["state"] for part in report(out)["parts"]}


@pytest.fixture(scope="module")
def migrated(job, tmp_path_factory):
    out = tmp_path_factory.mktemp("migrated") / "out"
    assert migrate(job, out) == 0
    return out


@pytest.fixture
def again(migrated, tmp_path):
    """A copy, to go on with."""
    return shutil.copytree(migrated, tmp_path / "again")


def test_a_model_that_is_the_same_is_migrated(migrated):
    found = report(migrated)
    assert (found["schema"], found["verdict"]) == ("semisync.migration/1", "MIGRATED")
    assert set(states(migrated).values()) == {"passed"}
    assert found["parity"]["verdict"] == "EQUIVALENT"
    assert found["parity"]["rows"] == 3000
    assert found["parity"]["baseline"]["auc"] > 0.6
    by_name = {part["name"]: part["found"] for part in found["parts"]}
    assert by_name["forward"]["report"]["rows"] == 3000
    assert by_name["training"]["report"]["steps"] == 3


@pytest.mark.long
def test_a_job_whose_only_graph_is_that_of_its_training_is_migrated(job, tmp_path):
    assert migrate(job, tmp_path / "out", checkpoint="trains.ckpt") == 0
    assert set(states(tmp_path / "out").values()) == {"passed"}
    assert "BatchNorm took its moving statistics" in (tmp_path / "out/report.json").read_text()


@pytest.mark.long
def test_a_job_whose_saver_is_older_than_its_optimizer_is_migrated(job, tmp_path):
    assert migrate(job, tmp_path / "out", checkpoint="weights.ckpt") == 0
    assert set(states(tmp_path / "out").values()) == {"passed"}
    parts = {part["name"]: part["found"] for part in report(tmp_path / "out")["parts"]}
    begun = parts["training"]["report"]["begun"]
    assert {"beta1_power", "global_step", "items/Adam", "cities/Adam_1"} < set(begun)
    assert "lacks beta1_power, beta2_power, global_step, batch" in parts["training"]["text"]
    assert parts["training"]["report"]["compared"]["slot"] == 16


@pytest.mark.long
def test_options_of_the_conversion_and_of_batches_are_handed_on(job, tmp_path, monkeypatch):
    compared, sizes = training.compare_training, []

    def compare(prefix, converted, data, setting, steps):
        sizes.append(setting.reading.size)
        return compared(prefix, converted, data, setting, steps)

    monkeypatch.setattr(training, "compare_training", compare)
    out = tmp_path / "out"
    more = ["--rename", "^cities$=towns", "--drop", "^cities/Adagrad$", "--batch-size", "50"]
    assert migrate(job, out, *more, "--resume") == 1
    carried = report(out)["carried"]
    assert {table["name"] for table in carried["tables"]} == {"towns", "items_table"}
    assert carried["dropped"]["cities/Adagrad"] == "--drop ^cities/Adagrad$"
    assert sizes == [50]


@pytest.mark.long
def test_few_rows_leave_nothing_open_where_the_outputs_are_tensorflows(job, tmp_path):
    rows = pyarrow.parquet.read_table(job / "rows.parquet").slice(0, 100)
    few = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(rows, few)
    out = tmp_path / "out"
    assert migrate(job, out, "--data", str(few)) == 0
    assert set(states(out).values()) == {"passed"}
    assert report(out)["parity"]["verdict"] == "INCONCLUSIVE"
    auc = next(part for part in report(out)["parts"] if part["name"] == "auc")
    assert "INCONCLUSIVE by itself, as 100 rows" in auc["finding"]


@pytest.mark.long
def test_a_wrapped_job_is_migrated_by_its_own_graph(job, wrapped_job, tmp_path):
    shutil.copy(job / "rows.parquet", wrapped_job)
    assert migrate(wrapped_job, tmp_path / "out", checkpoint="") == 0
    found = report(tmp_path / "out")
    assert found["verdict"] == "MIGRATED"
    assert set(states(tmp_path / "out").values()) == {"passed"}
    (optimizer,) = found["carried"]["training"]["optimizers"]
    assert (optimizer["name"], optimizer["settings"]["learning_rate"]) == ("Adagrad", 0.1)


def test_it_says_what_was_carried(migrated):
    found = report(migrated)
    assert [(one["rows"], one["optimizer"]) for one in found["carried"]["tables"]] == [
        (50, "Adagrad"),
        (100, "Adagrad"),
    ]
    features = {one["name"]: (one["dtype"], one["shape"]) for one in found["features"]}
    assert features == {
        "city": ("string", [None]),
        "item": ("int64", [None]),
        "price": ("float32", [None, 1]),
    }
    (optimizer,) = found["carried"]["training"]["optimizers"]
    assert (optimizer["name"], optimizer["settings"]["learning_rate"]) == ("Adagrad", 0.1)
    assert found["carried"]["slots"]["tables"] == 2
    assert any("migrate.build_training" in sentence for sentence in found["left"])


def test_the_scores_of_both_sides_are_probabilities_with_their_logits(migrated):
    for name in ("tensorflow", "torch"):
        table = pyarrow.parquet.read_table(migrated / f"{name}.parquet")
        assert table.column_names == ["id", "clicked", "score", "logit"]
        assert table["id"].to_pylist() == list(range(3000))[::-1]


def test_the_page_needs_no_network_and_fits_a_phone(migrated, tmp_path):
    page = (migrated / "report.html").read_text()
    assert not re.search(r"(src|href)=[\"']?(https?:)?//|<script", page)
    wide = browser.answer(tmp_path, page, "document.body.scrollWidth", "--window-size=500,900")
    assert int(wide) <= 500


def test_what_was_done_is_not_done_again(job, again, monkeypatch, capsys):
    def boom(*_, **__):
        raise AssertionError("it was done")

    monkeypatch.setattr("semisync.migration.parts.look", boom)
    monkeypatch.setattr("semisync.migration.parts.convert", boom)
    monkeypatch.setattr("migrate.scoring.run.score", boom)
    monkeypatch.setattr("migrate.behaviour.forward.compare_forward", boom)
    monkeypatch.setattr("migrate.behaviour.training.compare_training", boom)
    before = (again / "torch.parquet").stat().st_mtime_ns
    assert migrate(job, again, "--json") == 0
    assert (again / "torch.parquet").stat().st_mtime_ns == before
    assert report(again)["verdict"] == "MIGRATED"
    assert json.loads(capsys.readouterr().out) == report(again)


def test_a_package_for_figures_that_went_missing_costs_no_verdict(job, again, monkeypatch):
    monkeypatch.setattr("semisync.migration.run.refuse_missing_packages", lambda: None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "parity.plot.svg", raising=False)
    assert migrate(job, again) == 0
    assert report(again)["verdict"] == "MIGRATED"
    page = (again / "report.html").read_text()
    assert "The figures of the AUC are left out: " in page
    assert "is not installed; run: " in page


@pytest.mark.long
def test_an_edit_of_model_py_is_compared_and_named(job, again):
    source = again / "converted" / "model.py"
    text = source.read_text()
    assert "torch.log1p(" in text
    source.write_text(text.replace("torch.log1p(", "torch.log("))
    assert migrate(job, again, "--steps", "0") == 1
    found = report(again)
    assert found["verdict"] == "NOT_MIGRATED"
    assert states(again)["forward"] == "failed"
    assert states(again)["training"] == "left out"
    (forward,) = [part for part in found["parts"] if part["name"] == "forward"]
    first = forward["found"]["report"]["first"]
    assert "torch.log(" in first["line"][1]
    assert first["node"] in forward["finding"]
    assert f"Look first at: {first['node']}" in found["sentence"]
    assert "NOT MIGRATED" in (again / "report.html").read_text()


@pytest.mark.long
def test_names_that_are_guesses_are_told(job, again, capsys):
    source = again / "converted" / "model.py"
    text = source.read_text()
    assert text.count('["price:0"])') == 1
    source.write_text(text.replace('["price:0"])', '["price:0"], guessed=True)'))
    assert migrate(job, again, "--steps", "0") == 0
    sentence = (
        "Check the names of these inputs, which are guesses from the scopes of feature columns: "
        "price."
    )
    assert sentence in capsys.readouterr().out.splitlines()
    assert sentence in report(again)["left"]


def part_of(out, name):
    return next(part for part in report(out)["parts"] if part["name"] == name)


def one_rare_row(job, again, column, value, monkeypatch):
    """Adds .5 in model.py for the rows that have `value`, of which there is one; the exit code."""
    monkeypatch.setattr("semisync.migration.parts.ROWS", 300)
    rows = pyarrow.parquet.read_table(job / "rows.parquet")
    items = np.minimum(rows["item"].to_numpy(), 98)
    items[1500] = 99
    rows = rows.set_column(rows.column_names.index("item"), "item", pa.array(items))
    pyarrow.parquet.write_table(rows, again / "rows.parquet")
    source = again / "converted" / "model.py"
    fault = f" + 0.5 * (given[{column!r}] == {value}).float().reshape(-1, 1)"
    text, faults = re.subn(r"self\.out\(\w+\)", lambda call: call[0] + fault, source.read_text())
    assert faults == 1
    source.write_text(text)
    return migrate(job, again, "--data", str(again / "rows.parquet"), "--steps", "0")


@pytest.mark.long
def test_a_fault_in_one_row_of_a_rare_value_is_among_the_rows_that_are_drawn(
    job, again, monkeypatch
):
    assert one_rare_row(job, again, "item", 99, monkeypatch) == 1
    (output,) = part_of(again, "forward")["found"]["report"]["outputs"]
    assert (output["beyond"], output["absolute_at"]["row"]) == (1, 1501)
    assert "300 of 3,000 rows were drawn: each value of city, item" in json.dumps(report(again))


@pytest.mark.long
def test_a_fault_in_one_row_that_was_not_drawn_is_in_the_verdict_with_its_row(
    job, again, monkeypatch
):
    price = pyarrow.parquet.read_table(job / "rows.parquet")["price"][1234].as_py()
    assert one_rare_row(job, again, "price", price, monkeypatch) == 1
    assert states(again)["forward"] == "passed"
    assert states(again)["rows"] == "failed"
    found = report(again)
    assert found["sentence"].startswith("What differs: the score of every row, with TensorFlow's.")
    assert (
        "The scores of 1 of 3,000 rows are 0.5 apart at most, in row 1,235 (key 1765)"
        in (found["sentence"])
    )
    first = part_of(again, "rows")["found"]["report"]["first"]
    assert "+ 0.5" in first["line"][1]


def test_the_largest_difference_of_all_rows_is_in_the_verdict(migrated):
    found = part_of(migrated, "rows")["found"]["report"]
    assert (found["rows"], found["beyond"]) == (3000, 0)
    theirs, ours = (
        pyarrow.parquet.read_table(migrated / f"{name}.parquet")["logit"].to_numpy()
        for name in ("tensorflow", "torch")
    )
    apart = np.abs(theirs.astype(float) - ours)
    assert found["largest"] == apart.max()
    assert found["at"]["row"] == apart.argmax() + 1
    assert (
        f"{apart.max():.3g} apart at most, in row {apart.argmax() + 1:,}"
        in (report(migrated)["sentence"])
    )


@pytest.mark.long
def test_the_steps_of_an_edited_model_py_are_compared(job, again):
    """Its outputs are TensorFlow's, and its training is another."""
    source = again / "converted" / "model.py"
    text = source.read_text()
    assert text.count("momentum=0.1") == 1
    source.write_text(text.replace("momentum=0.1", "momentum=0.2"))
    assert migrate(job, again) == 1
    found = report(again)
    assert states(again)["forward"] == "passed"
    assert states(again)["training"] == "failed"
    assert "Look first at: the statistic batch_normalization/moving_" in found["sentence"]


@pytest.mark.long
def test_an_edited_model_json_stands_in_the_verdict(job, again, capsys):
    path = again / "converted" / "model.json"
    config = json.loads(path.read_text())
    config["tables"][0]["optimizer"]["arguments"]["lr"] = 0.2
    path.write_text(json.dumps(config))
    assert migrate(job, again, "--steps", "0") == 0
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("MIGRATED: ")]
    assert "; not checked: model.json, which was edited since it was written." in line
    assert report(again)["sentence"] in line


def test_steps_that_differ_are_named_first(job, again, monkeypatch):
    def compare(prefix, converted, data, setting, steps):
        one = StepDifference("slot", "out/kernel/Adagrad", 1, 0.007)
        return TrainingReport(steps, 1e-5, [one], one, {}, {}, [], [])

    monkeypatch.setattr("migrate.behaviour.training.compare_training", compare)
    (again / "parts" / "training.json").unlink()
    assert migrate(job, again) == 1
    assert "Look first at: the slot out/kernel/Adagrad in step 1" in report(again)["sentence"]


def test_an_edited_model_is_not_overwritten_by_that_of_another_checkpoint(job, again, capsys):
    source = again / "converted" / "model.py"
    source.write_text(source.read_text() + "# mine\n")
    more = ["--output", "out/BiasAdd:0"]
    assert migrate(job, again, *more, checkpoint="scores.ckpt") == 3
    assert "model.py was edited" in capsys.readouterr().err
    assert source.read_text().endswith("# mine\n")


@pytest.mark.long
def test_a_weight_that_was_changed_is_found(job, again):
    with migrate_package.open_checkpoint(job / "model.ckpt") as checkpoint:
        kernel = checkpoint.read("out/kernel")
    data = again / "converted" / "__0_0.distcp"
    whole = data.read_bytes()
    assert whole.count(kernel.tobytes()) == 1
    data.write_bytes(whole.replace(kernel.tobytes(), (2 * kernel).tobytes()))
    assert migrate(job, again, "--steps", "0") == 1
    found = states(again)
    assert (found["values"], found["forward"]) == ("failed", "failed")
    assert report(again)["parity"]["verified"] is None


def test_a_conversion_that_was_interrupted_goes_on_and_another_begins_anew(job, tmp_path):
    settings = Settings(str(job / "model.ckpt"), "", "", str(tmp_path))
    partial = tmp_path / ".converted.partial"

    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conversion.convert(settings, False, interrupt)
    assert partial.is_dir()
    shutil.copytree(partial, tmp_path / "kept")
    conversion.convert(settings, True, lambda done, total: None)
    assert (tmp_path / "converted" / "model.py").is_file()
    (tmp_path / "kept").rename(partial)
    other = settings._replace(checkpoint=str(job / "scores.ckpt"), output="out/BiasAdd:0")
    found = conversion.convert(other, False, lambda done, total: None)
    assert found["slots"] == {"tables": 0, "dense": 0}
    assert not partial.exists()


@pytest.mark.long
def test_without_tensorflow_it_is_inconclusive_and_says_why(job, again, tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    assert migrate(job, again, python=str(bare)) == 2
    found = report(again)
    assert found["verdict"] == "INCONCLUSIVE"
    assert found["parity"] is None
    assert states(again) == {
        "values": "passed",
        "forward": "not run",
        "training": "not run",
        "tensorflow": "not run",
        "torch": "passed",
        "rows": "not run",
        "auc": "not run",
    }
    assert "ModuleNotFoundError" in " ".join(found["left"])


def test_a_graph_that_only_scores_is_migrated_for_scoring(job, tmp_path):
    out = tmp_path / "out"
    sigmoid = ["--output", "out/BiasAdd:0", "--sigmoid"]
    assert migrate(job, out, *sigmoid, checkpoint="scores.ckpt") == 2
    assert states(out)["training"] == "not run"
    assert "no training op" in report(out)["carried"]["training"]["reason"]
    assert migrate(job, out, *sigmoid, "--steps", "0", checkpoint="scores.ckpt") == 0
    assert report(out)["verdict"] == "MIGRATED"
    assert "Left out: the training steps" in report(out)["sentence"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--steps", "-1"], "--steps is 0 or more"),
        (["--batch-size", "0"], "--batch-size is 1 or more"),
        (["--drop", "absent"], "--drop 'absent' names none of the"),
        (["--margin", "2"], "margin"),
        (["--output", "absent:0"], "has no tensor 'absent:0'"),
        (["--meta", "none.meta"], "none.meta"),
        (["--feed", "x"], "--feed takes NAME=VALUE"),
        (["--input", "city=town"], "there is no input 'town'; model.py takes city, item, price"),
    ],
)
def test_a_call_without_meaning_is_one_sentence_and_no_report(
    job, tmp_path, capsys, more, sentence
):
    assert migrate(job, tmp_path / "out", *more) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.long
def test_an_interruption_says_that_the_same_command_goes_on(job, tmp_path, capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("migrate.behaviour.forward.compare_forward", interrupt)
    assert migrate(job, tmp_path / "out") == exit_codes.INTERRUPTED == 130
    said = capsys.readouterr().err.splitlines()
    assert said[-1] == "semisync migrate: interrupted; the same command goes on from there"
    monkeypatch.undo()
    assert migrate(job, tmp_path / "out", "--steps", "0") == 0
    assert "converted before: " in capsys.readouterr().out


def test_a_second_run_is_told_who_is_at_work(job, tmp_path, capsys):
    out = tmp_path / "out"
    with locked(str(out / "parts"), str(out)):
        assert migrate(job, out) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert f"another process is at work in {out}/parts (process {os.getpid()} on " in said
    assert re.search(r", since \d{4}-\d\d-\d\d [\d:]{8} [+-]\d{4}\); wait for it to end$", said)
    assert [path.name for path in (out / "parts").iterdir()] == ["lock"]


def test_a_foreign_folder_is_left_alone(job, tmp_path, capsys):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert migrate(job, tmp_path) == 3
    assert "holds something other than a migration's output" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
