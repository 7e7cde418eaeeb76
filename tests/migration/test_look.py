"""`semisync migrate` looks at everything first: every finding at once, with the words to add."""

import html
import json
import pathlib
import shlex
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main
from tests.support.programs import output_of
from tests.support.require import fastest_tensorflow, forked_tensorflow
from tests.support.written import written

WRITER = pathlib.Path(__file__).with_name("write_rates.py")


class Job:
    """A job, and data sets of its rows."""

    def __init__(self, folder):
        self._job, self._folder = written(fastest_tensorflow(), WRITER), folder
        self._rows = dict(np.load(self._job / "rows.npz"))
        self._rows["tags"] = self._rows["tags"].tolist()

    def rows(self, **others):
        """The path of the rows with other columns; one that is None is left out."""
        columns = {**self._rows, **others}
        path = self._folder / "rows.parquet"
        pyarrow.parquet.write_table(
            pa.table({name: one for name, one in columns.items() if one is not None}), path
        )
        return str(path)

    def column(self, name, values):
        """A column in which {row: value} are others."""
        column = list(self._rows[name])
        for row, value in values.items():
            column[row] = value
        return column

    def migrate(self, data, *more):
        """The exit code."""
        arguments = ["migrate", str(self._job / "model.ckpt"), "--data", data, "--label", "click"]
        arguments += ["--out", str(self._folder / "out"), "--tf-python", forked_tensorflow()]
        return main([*arguments, *more])


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path)


FED = ("--feed", "keep=1.0", "--feed", "scale=1.0", "--feed", "rate=0.01")


def test_every_finding_is_told_at_once_and_nothing_is_done(job, tmp_path, capsys):
    data = job.rows(
        item=job.column("item", {7: -1, 300: 20}),
        tags=job.column("tags", {10: [3, 4, 20]}),
        age=job.column("age", {3: None, 53: None}),
        click=job.column("click", {399: 2}),
    )
    assert job.migrate(data, "--key", "id", "--input", "age=years") == 3
    said = capsys.readouterr().err.splitlines()
    expected = [
        "there is no input 'years'; model.py takes item, tags, age, scale, keep",
        "the input 'keep' is one value for all rows; give it with --feed keep=1.0",
        "a hyperparameter depends on 'rate', which each step is fed; give --feed rate=VALUE",
        "has no column 'id'; it has: item, tags, age, click",
        "has no column 'scale'; it has: item, tags, age, click; --feed scale=VALUE gives one value "
        "for all rows, --input COLUMN=scale names another column",
        "column 'item' in row 8 is -1, no row of the table 'items', which has the rows 0 to 19 (2 "
        "such in all): TensorFlow ends there",
        "column 'tags' in row 11 is 20, no row of the table 'items', which has the rows 0 to 19 (1 "
        "such in all)",
        "column 'age' in row 4 is empty (2 of 400 rows); every row needs a value: add --fill age=0",
        "column 'click' in row 400 is 2.0; a label must be 0 or 1",
    ]
    assert len(said) == len(expected)
    for line, sentence in zip(said, expected):
        assert line.startswith("semisync migrate: ")
        assert sentence in line
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["lock", "parts"]


def test_an_id_that_is_no_row_is_found_in_a_later_batch_too(job, capsys):
    data = job.rows(item=job.column("item", {150: 21, 151: -1, 380: 20}))
    assert job.migrate(data, *FED, "--batch-size", "100") == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert "column 'item' in row 151 is 21, no row of the table 'items'" in said
    assert "which has the rows 0 to 19 (3 such in all)" in said


@pytest.mark.long
def test_with_the_words_that_it_gave_the_job_is_migrated_and_the_next_commands_run(
    job, tmp_path, capsys
):
    data = job.rows(age=job.column("age", {3: None}), id=np.arange(400))
    more = [
        "--type",
        "age=float64",
        "--fill",
        "a*=0",
        "--input",
        "item=item:0",
        "--key",
        "id",
        "--margin",
        "0.01",
    ]
    assert job.migrate(data, *FED, *more) == 0
    said = capsys.readouterr().out
    assert "looked at: the graph, the checkpoint and 400 rows" in said
    after = json.loads((tmp_path / "out" / "report.json").read_text())["next"]
    commands = {one["what"]: one["command"] for one in after}
    page = (tmp_path / "out" / "report.html").read_text()
    for what, command in commands.items():
        assert f"next, {what}: {command}" in said
        assert html.escape(command) in page
    assert list(commands) == [
        "train on",
        "score new rows",
        "pack it to serve",
        "compare with live scores",
    ]
    assert " --type age=float64 --fill 'a*=0' " in commands["train on"]
    assert " --feed keep=VALUE --feed scale=1.0 --feed rate=0.01 " in commands["train on"]
    assert " --feed keep=1.0 --feed scale=1.0 --sigmoid" in commands["score new rows"]
    unknown = {"NEW_ROWS": data, "keep=VALUE": "keep=0.5"}
    unknown["LIVE"] = str(tmp_path / "out" / "tensorflow.parquet")
    for what, more in [
        ("train on", ["--batch-size", "100"]),
        ("score new rows", []),
        ("compare with live scores", ["--inconclusive", "warn"]),
    ]:
        words = [unknown.get(word, word) for word in shlex.split(commands[what])]
        assert words[0] == "semisync"
        assert main([*words[1:], *more]) == 0, what
    words = shlex.split(commands["pack it to serve"])
    assert words[:2] == ["python", "-c"]
    output_of(sys.executable, *words[1:])
    assert (tmp_path / "out" / "model-1.0-py3-none-any.whl").is_file()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("column", "values", "sentence"),
    [
        ("age", ["old"] * 400, "column 'age' in row 1 is 'old'"),
        ("item", [0.5] * 400, "column 'item' in row 1 is 0.5"),
        ("click", [0.0] * 400, "all 400 labels are 0; an AUC needs rows of both classes"),
        ("click", None, "has no column 'click'; it has: item, tags, age"),
        ("id", [None, *range(399)], "column 'id' in row 1 is empty"),
        ("id", [0, *range(399)], "column 'id' is not a key: 1 rows repeat the key of an earlier"),
        ("age", None, "it has: item, tags, click, id; --input COLUMN=age names another"),
    ],
)
def test_a_column_of_something_else_is_found(job, capsys, column, values, sentence):
    data = job.rows(**{"id": np.arange(400), column: values})
    assert job.migrate(data, *FED, "--key", "id") == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said


@pytest.mark.parametrize("package", ["matplotlib", "numba"])
def test_a_package_that_a_part_would_lack_is_found_first(job, capsys, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    assert job.migrate(job.rows(), *FED) == 3
    (said,) = capsys.readouterr().err.splitlines()
    assert f"the Python package {package!r}, needed to " in said
    assert "pip install" in said
