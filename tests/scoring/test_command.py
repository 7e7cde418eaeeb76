"""What `semisync score` asks for before it opens anything, and what its file holds."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate.data import Column, open_data
from migrate.scoring import output
from migrate.scoring.model import Input
from migrate.scoring.output import ScoreFile
from migrate.scoring.run import Reading, Writing, batches, score
from migrate.scoring.scores import one_a_row, probability
from parity.io.batches import Batch
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.support.score_files import write

TORCH = ["--torch-model", "m:build", "--converted", "c"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--torch-model", "m:f", "--saved-model", "s"], "given the directory of --converted"),
        (["--converted", "c", "--examples", "e"], "--examples is TensorFlow's"),
        (["--checkpoint", "c"], "--checkpoint needs --output"),
        (["--checkpoint", "c", "--output", "o"], "there is no checkpoint c"),
        (["--saved-model", "s", "--examples", "e"], "name the model's inputs"),
        (
            [*TORCH, "--input", "a", "--output", "o"],
            "with --torch-model the code says what --output",
        ),
        (TORCH, "name the model's inputs"),
        ([*TORCH, "--input", "sparse"], "cannot be called 'sparse'"),
        ([*TORCH, "--input", "a=x", "--sparse", "b=x"], "two of the inputs are called 'x'"),
        (["--saved-model", "s", "--key", "score"], "two of the columns to write are called 'sco"),
        (["--saved-model", "s", "--key", "y", "--label", "y"], "two of the columns to write"),
        (["--saved-model", "s", "--feed", "x=yes"], "--feed x takes JSON"),
        (["--saved-model", "s", "--feed", "x"], "--feed takes NAME=VALUE, not 'x'"),
        (["--saved-model", "s", "--type", "x=double"], "--type knows bool, int32, "),
        (["--saved-model", "s", "--batch-size", "0"], "--batch-size is 1 or more"),
        (["--saved-model", "s", "--out", "."], ". is a folder; --out names the file to write"),
        (["--saved-model", "none"], "none is not a SavedModel, it has no saved_model.pb"),
        (["--checkpoint", "c", "--output", "o", "--input", "a"], "there is no checkpoint c"),
        ([*TORCH, "--input", "a"], "c has no manifest.json; give what `semisync convert` wrote"),
        (["--converted", "c"], "c has no manifest.json; give what `semisync convert` wrote"),
    ],
)
def test_a_call_without_meaning_is_one_sentence(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert main(["score", "data.csv", "--out", "o.parquet", *arguments]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "one of the arguments --saved-model --checkpoint --converted is required"),
        (["--saved-model", "s", "--checkpoint", "c"], "--checkpoint: not allowed with argument"),
        (["--converted", "c", "--saved-model", "s"], "--saved-model: not allowed with argument"),
    ],
)
def test_one_model_scores(capsys, arguments, sentence):
    with pytest.raises(SystemExit) as end:
        main(["score", "data.csv", "--out", "o.parquet", *arguments])
    assert end.value.code == 3
    assert sentence in capsys.readouterr().err


def batch(skipped=0, **columns):
    return Batch("f.csv", skipped, pa.table(columns))


def written(path, batches, key=None, label=None, kept=()):
    sink = ScoreFile(str(path), key, label, kept)
    try:
        for one in batches:
            sink.add(one, {"score": np.arange(one.table.num_rows, dtype=np.float32)})
        sink.finish({})
    finally:
        sink.close()
    return pyarrow.parquet.read_table(path)


def test_rows_keep_their_order_over_many_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "_ROW_GROUP", 8)
    parts = [
        batch(id=list(range(n * 5, n * 5 + 5)), y=["0", "1", "1.0", "1", "0"]) for n in range(5)
    ]
    found = written(tmp_path / "out", parts, "id", "y")
    assert found["id"].to_pylist() == list(range(25))
    assert found["y"].to_pylist() == [0, 1, 1, 1, 0] * 5
    assert pyarrow.parquet.ParquetFile(tmp_path / "out").num_row_groups == 3


@pytest.mark.parametrize(
    ("second", "sentence"),
    [
        ({"id": [None], "y": [1]}, "f.csv: column 'id' in row 3 is empty"),
        ({"id": [1], "y": [2]}, "f.csv: column 'y' in row 3 is 2; a label must be 0 or 1"),
        ({"id": [1], "y": [-1]}, "f.csv: column 'y' in row 3 is -1; a label must be 0 or 1"),
        ({"id": ["x"], "y": [1]}, "f.csv has columns of another type than the rows before"),
    ],
)
def test_a_bad_key_or_label_is_named_by_row(tmp_path, second, sentence):
    with pytest.raises(BadInput, match=sentence):
        written(tmp_path / "out", [batch(id=[1, 2], y=[0, 1]), batch(2, **second)], "id", "y")


class Echo:
    """A model whose score of a row is the sum of its inputs, a text's being its length."""

    batch = output = None

    def __init__(self, *inputs):
        self.inputs, self.taken = list(inputs), []

    def score(self, rows, features):
        values = [feature.numpy() for feature in features]
        self.taken.append([value.tolist() for value in values])
        numbers = [v if v.dtype != object else np.vectorize(len)(v) for v in values]
        return np.sum(numbers, axis=0, dtype=np.float32)

    def origin(self):
        return {}


@pytest.mark.parametrize("kind", ["parquet", "csv", "tfrecord"])
def test_columns_of_the_path_reach_the_inputs_and_the_file(tmp_path, kind):
    for label, zone in ((0, "a%20b"), (1, "__HIVE_DEFAULT_PARTITION__")):
        path = tmp_path / f"y={label}" / f"zone={zone}" / "day=07" / f"part.{kind}"
        path.parent.mkdir(parents=True)
        write(path, pa.table({"x": [1 + label, 2 + label]}))
    model = Echo(
        Input("x", "x", "int64", False),
        Input("y", "number", "float32", False),
        Input("y", "text", "bytes", False),
        Input("day", "day", "bytes", False),
        Input("day", "number of the day", "int64", False),
    )
    out = tmp_path / "scores.parquet"
    writing = Writing(label="y", keep=["day", "zone"])
    scored = score(model, str(tmp_path / "y=*"), str(out), writing=writing)
    assert (scored.rows, scored.positives) == (4, 2)
    whole = [taken for taken in model.taken if len(taken[0]) == 2]
    assert whole[0] == [[1, 2], [0, 0], [b"0"] * 2, [b"07"] * 2, [7, 7]]
    found = pyarrow.parquet.read_table(out)
    assert found["zone"].to_pylist() == ["a b"] * 2 + [None] * 2
    assert found["day"].to_pylist() == ["07"] * 4
    columns = [Column("x", "label"), Column("y", "label"), Column("day", "key")]
    trained = [batch.keys["day"] for batch in open_data(tmp_path / "y=0", columns, 2, last="drop")]
    assert trained[0].to_pylist() == found["day"].to_pylist()[:2]


def test_a_column_of_the_path_without_a_value_is_missing_to_a_model(tmp_path):
    path = tmp_path / "zone=__HIVE_DEFAULT_PARTITION__" / "part.parquet"
    path.parent.mkdir()
    pyarrow.parquet.write_table(pa.table({"x": [1]}), path)
    dense, sparse = (Input("zone", "zone", "bytes", wide) for wide in (False, True))
    ((_, (found,)),) = batches(str(tmp_path), [sparse])
    assert found.lengths.tolist() == [0]
    with pytest.raises(BadInput, match="part.parquet: column 'zone' in row 1 is empty"):
        list(batches(str(tmp_path), [dense]))
    ((_, (found,)),) = batches(str(tmp_path), [dense], reading=Reading(fills=[("zone", "none")]))
    assert found.numpy().tolist() == [b"none"]


def test_a_field_of_a_text_file_has_the_numbers_of_an_input_of_unknown_width(tmp_path):
    (tmp_path / "rows.csv").write_text("ids,age,tag\n3|17,5,a|b\n4|18,6,c\n")
    shape = (None, None)
    inputs = [
        Input("ids", "ids", "int64", False, shape),
        Input("age", "age", "int64", False, shape),
    ]
    text = Input("tag", "tag", "bytes", False, shape)
    assert [one.several for one in (*inputs, text)] == [True, True, False]
    lists = [one.column for one in (*inputs, text) if one.several]
    ((_, found),) = batches(
        str(tmp_path / "rows.csv"), [*inputs, text], reading=Reading(lists=lists)
    )
    assert [one.numpy().tolist() for one in found] == [
        [[3, 17], [4, 18]],
        [[5], [6]],
        [[b"a|b"], [b"c"]],
    ]


def test_of_an_output_of_several_dimensions_the_columns_count_row_major():
    output = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert one_a_row(output, batch(a=[1, 2]), column=5).tolist() == [5, 17]
    assert one_a_row(output[:, :1, :1], batch(a=[1, 2])).tolist() == [0, 12]
    padded = np.array([5.0, 17, 3, 3])  # of a model that takes four rows
    assert one_a_row(padded, batch(a=[1, 2]), rows=4).tolist() == [5, 17]
    with pytest.raises(BadInput, match=r"is \[2, 3, 4\] for 2 .*--column to choose one of 12"):
        one_a_row(output, batch(a=[1, 2]))
    with pytest.raises(BadInput, match=r"\[2, 3, 4\] for 3 rows; one score per row is expected$"):
        one_a_row(output, batch(a=[1, 2, 3]), column=0)


def test_one_score_a_row_is_taken_as_it_is_or_as_a_probability():
    three = batch(a=[1, 2, 3])
    logits = np.array([[-800], [0], [800]], np.float32)
    assert one_a_row(logits, three).tolist() == [-800, 0, 800]
    found = probability(logits[:, 0])
    assert (found.tolist(), found.dtype) == ([0, 0.5, 1], np.float32)
    assert one_a_row(np.eye(3), three, column=1).tolist() == [0, 1, 0]
    assert one_a_row(np.float32(5), batch(a=[1])).tolist() == [5]
    with pytest.raises(BadInput, match=r"is \[3, 1\] for 3 rows; it has no column 1, but 0 to 0"):
        one_a_row(logits, three, column=1)
    with pytest.raises(BadInput, match="row 12 is nan"):
        one_a_row(np.array([0, np.nan, 1]), three._replace(skipped=10))
