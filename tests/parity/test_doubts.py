"""What passes too easily is told beside the verdict: one model's scores twice, rows left out."""

import html
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import parity
from parity import doubts
from parity.report.markdown import markdown
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.parity.kinds import columns

SCORES = ["--label", "y", "--baseline-score", "p", "--margin", "0.1"]


@pytest.fixture
def files(tmp_path, monkeypatch):
    """old.parquet; copy.parquet, its copy; short.parquet, which lacks five rows and adds two."""
    labels, old, new = columns()
    table = pa.table({"id": np.arange(len(labels)), "y": labels, "p": old, "q": new})
    pyarrow.parquet.write_table(table, tmp_path / "old.parquet")
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "old.parquet").read_bytes())
    extra = pa.table({"id": [-1, -2], "y": [True, False], "p": [0.5, 0.5], "q": [0.5, 0.5]})
    short = pa.concat_tables([table.slice(5), extra])
    pyarrow.parquet.write_table(short.set_column(2, "p", short["q"]), tmp_path / "short.parquet")
    monkeypatch.chdir(tmp_path)


def told(capsys, *arguments):
    """Terminal, Markdown, page and JSON."""
    assert main(["parity", *arguments, *SCORES, "--out", "out"]) == 0
    kinds = ("md", "html", "json")
    text, page, record = (pathlib.Path(f"out/report.{k}").read_text("utf-8") for k in kinds)
    return capsys.readouterr().out, text, html.unescape(page), record


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["4", "0"])
def test_a_copy_of_the_baselines_file_is_a_warning_on_the_first_screen(files, capsys, memory):
    out, text, page, record = told(
        capsys, "old.parquet", "copy.parquet", "--key", "id", "--memory", memory
    )
    box = page[page.index('<div class="verdict') : page.index("</div>")]
    for place in (out, box, text):
        assert "The candidate's score equals the baseline's in every row." in place
        assert "copy.parquet is a copy of old.parquet (SHA-256 " in place
    assert json.loads(record)["warnings"][0] == doubts.SAME_SCORES


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["4", "0"])
def test_misses_are_counted_wherever_the_verdict_is_read(files, capsys, memory):
    more = ["--key", "id", "--allow-misses", "--memory", memory]
    out, text, page, record = told(capsys, "old.parquet", "short.parquet", *more)
    sentence = (
        "Left out: 5 of 3,000 rows of old.parquet (0.17%) and 2 of 2,997 rows of short.parquet "
        "(0.067%), whose keys the other file lacks. The verdict is on the 2,995 rows that both "
        "have."
    )
    box = page[page.index('<div class="verdict') : page.index("</div>")]
    for place in (out, box, text):
        assert sentence in place
    assert json.loads(record)["warnings"] == [sentence]


@pytest.mark.long
def test_rows_that_a_part_left_out_are_told_of_the_merged_parts(files, capsys):
    two = ["--key", "id", "--allow-misses", "--partial", "1.part"]
    assert main(["parity", "old.parquet", "short.parquet", *SCORES[:4], *two]) == 0
    assert "Warning: Left out: 5 of 3,000 rows of old.parquet (0.17%)" in capsys.readouterr().out
    assert main(["parity", "--merge", "1.part", "--margin", "0.5", "--out", "out"]) == 0
    out = capsys.readouterr().out
    assert "Warning: Left out: 5 of 3,000 rows of the baseline's data (0.17%) and 2 of" in out


def test_nothing_is_warned_of_where_nothing_is_odd(files, capsys):
    out, text, page, record = told(capsys, "old.parquet", "--candidate-score", "q")
    assert "Warning" not in out + text and '<p class="warning' not in page
    assert json.loads(record)["warnings"] == []


def test_one_row_that_differs_is_no_copy():
    labels, old, _ = columns()
    new = old.copy()
    new[7] = np.nextafter(new[7], 1)
    assert doubts.SAME_SCORES not in parity.compare(labels, old, new).warnings
    assert parity.compare(labels, old, old.copy()).warnings == (doubts.SAME_SCORES,)
    narrow = old.astype(np.float32)
    found = parity.compare(labels, narrow, narrow.astype(np.float64))
    assert found.warnings == (doubts.SAME_SCORES,), "in another width"


def test_a_training_run_on_both_sides_is_a_warning():
    labels, old, new = columns()
    found = parity.compare_runs(labels, [old, new], [old**2, new])
    assert doubts.SAME_RUN in found.warnings
    assert parity.compare_runs(labels, [old, new], [old**2, new**2]).warnings == ()


def useless(kind, rows=40_000):
    """Two models of one strength, useless in some way; half of the rows are positive."""
    rng = np.random.default_rng(3)
    labels = rng.random(rows) < 0.5
    old = labels + rng.normal(size=rows)
    new = old + 1e-4 * rng.normal(size=rows)
    if kind == "shuffled labels":
        labels = rng.permutation(labels)
    if kind == "constant scores":
        old, new = np.full(rows, 0.2), np.full(rows, 0.3)
    if kind == "half filled":
        filled = rng.random(rows) < 0.5
        old, new = (np.where(filled, 0.5, scores) for scores in (old, new))
    return labels, old, new


@pytest.mark.parametrize(
    ("kind", "reason", "sentence"),
    [
        ("shuffled labels", "chance", "The baseline's AUC, 0.50"),
        ("constant scores", "ties", "The baseline gives 100% of the pairs"),
        ("half filled", "ties", "The candidate gives 25% of the pairs"),
    ],
)
def test_two_useless_models_are_not_equivalent(kind, reason, sentence):
    labels, old, new = useless(kind)
    found = parity.compare(labels, old, new, 0.001)
    assert (found.verdict, found.reason) == ("INCONCLUSIVE", reason)
    assert max(map(abs, found.interval)) < 0.001, "the AUCs agree"
    assert sentence in " ".join(found.warnings)
    assert found.rows_to_settle is None, "no number of rows helps"
    text = markdown(found, "Mine")
    assert "On these rows the AUCs agree to within the margin, but" in text
    assert "Look at the labels, the join and the scores" in text
    runs = parity.compare_runs(labels, [old, old + 1e-9], [new], 0.001)
    assert (runs.verdict, runs.reason, runs.warnings) == ("INCONCLUSIVE", reason, found.warnings)
    assert runs.rows_to_settle is None
    sound = parity.compare(*useless("sound"), 0.001)
    assert (sound.verdict, sound.reason, sound.warnings) == ("EQUIVALENT", None, ())


@pytest.mark.long
@pytest.mark.parametrize("memory", ["4", "0"])
def test_useless_models_end_with_exit_code_2(tmp_path, monkeypatch, memory):
    monkeypatch.chdir(tmp_path)
    labels, old, new = useless("shuffled labels")
    pyarrow.parquet.write_table(pa.table({"y": labels, "p": old, "q": new}), "s.parquet")
    command = ["s.parquet", "--candidate-score", "q", "--memory", memory, *SCORES, "--out", "out"]
    assert main(["parity", *command]) == 2
    record = json.loads(pathlib.Path("out/report.json").read_text("utf-8"))
    assert record["reason"] == "chance"
    assert any("cannot be told from 0.5" in warning for warning in record["warnings"])


def test_one_run_that_guesses_is_seen_among_others():
    labels, old, new = useless("sound")
    guess = np.random.default_rng(0).permutation(new)
    found = parity.compare_runs(labels, [old, old + 1e-9], [new, guess], 0.5)
    assert "The candidate's AUC, 0.49" in " ".join(found.warnings)


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize(("column", "values"), [("y", "0 in every"), ("no", "1 in every")])
def test_a_score_that_is_the_label_is_refused(files, capsys, memory, column, values):
    table = pyarrow.parquet.read_table("old.parquet")
    labels = table["y"].to_numpy()
    table = table.append_column("no", pa.array(1.0 - labels))
    pyarrow.parquet.write_table(table, "leaked.parquet")
    command = ["leaked.parquet", "--candidate-score", column, "--memory", memory]
    assert main(["parity", *command, *SCORES, "--out", "out"]) == 3
    told = capsys.readouterr().err
    assert f"is the label itself: it is {values} row with label 0" in told
    with pytest.raises(BadInput, match="the label itself"):
        parity.compare_runs(labels, [table["p"], labels * 3.0], [table["q"]])


def test_the_compared_columns_and_files_are_named(files, capsys):
    out, text, page, _ = told(capsys, "old.parquet", "copy.parquet", "--key", "id")
    sentence = (
        "Column 'p' of old.parquet against column 'p' of copy.parquet, labels in 'y', joined by "
        "'id'."
    )
    for place in (out, text, page[: page.index("</dl>")]):
        assert sentence in place
    assert markdown(parity.compare(*columns()), "Mine").count("against column") == 0
