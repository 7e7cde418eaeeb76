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


def test_the_compared_columns_and_files_are_named(files, capsys):
    out, text, page, _ = told(capsys, "old.parquet", "copy.parquet", "--key", "id")
    sentence = (
        "Column 'p' of old.parquet against column 'p' of copy.parquet, labels in 'y', joined by "
        "'id'."
    )
    for place in (out, text, page[: page.index("</dl>")]):
        assert sentence in place
    assert markdown(parity.compare(*columns()), "Mine").count("against column") == 0
