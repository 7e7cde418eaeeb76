"""A converted model scores as TensorFlow does, and what the user's code does wrong is named."""

import json
import pathlib
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import migrate
from semisync.cli import main
from tests.support.require import shared

CODE = pathlib.Path(__file__).with_name("torch_model.py")


@pytest.fixture(scope="module")
def converted(tf2_models, tmp_path_factory):
    out = tmp_path_factory.mktemp("converted") / "model"
    with migrate.open_checkpoint(tf2_models.folder / "model.ckpt") as checkpoint:
        migrate.convert(migrate.plan(checkpoint), out)
    return str(out)


def torch_arguments(converted, code=CODE):
    return [
        *("--converted", converted, "--torch-model", f"{code}:build"),
        *("--input", "age", "--sparse", "user", "--sparse", "genres"),
    ]


def test_both_sides_of_real_interactions_are_equivalent(tf2_models, converted, tmp_path, capsys):
    """Students' answers: who, which skill, how far in; a partitioned table, a sparse one."""
    source = shared("data", "assist2017_pid", "interactions.parquet")
    taken = pyarrow.parquet.ParquetFile(source).iter_batches(20_000)
    table = pa.Table.from_batches([next(taken)]).rename_columns(
        {"skill": "genres", "seq": "age", "label": "y"}
    )
    pyarrow.parquet.write_table(table, tmp_path / "data.parquet")
    common = ["score", str(tmp_path / "data.parquet"), "--label", "y", "--keep", "user", "--out"]
    old, new = str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet")
    assert main([*common, old, *tf2_models.checkpoint]) == 0
    assert "20,000 rows, " in capsys.readouterr().out
    assert main([*common, new, *torch_arguments(converted), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["schema"], said["rows"]) == ("semisync.score/1", 20_000)
    assert said["positives"] == sum(table["y"].to_pylist())
    one, other = (pyarrow.parquet.read_table(path)["score"].to_numpy() for path in (old, new))
    assert np.ptp(one) > 1
    assert np.abs(one - other).max() <= 1e-5
    assert main(["verify", str(tf2_models.folder / "model.ckpt"), converted, "--json"]) == 0
    record = tmp_path / "verified.json"  # so few rows cannot exclude rare faults
    record.write_text(capsys.readouterr().out)
    report = ["--baseline-logit", "score", "--out", str(tmp_path / "report"), "--group", "user"]
    report += ["--verified", str(record)]
    assert main(["parity", old, new, "--key", "row", "--label", "y", *report]) == 0


def test_a_converted_model_gives_tensorflows_scores(tf2_models, converted, data, rows, tmp_path):
    out = tmp_path / "out.parquet"
    arguments = [*torch_arguments(converted), "--key", "id", "--batch-size", "7"]
    assert main(["score", data, *arguments, "--out", str(out)]) == 0
    found = pyarrow.parquet.read_table(out)
    assert found["id"].to_pylist() == rows["id"].to_pylist()
    assert found["score"].type == "float"
    assert np.abs(found["score"].to_numpy() - tf2_models.expected["logits"]).max() <= 1e-5


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("raise KeyError('kernel')", r"failed in .*model\.py, line 4: KeyError: 'kernel'"),
        (
            "from semisync.common.sentences import some_of; return some_of(5, 1)",
            r"failed in .*model\.py, line 4: TypeError",
        ),
        ("return 5", "returned int, not a callable"),
        ("return lambda f: f['price']", r"failed in .*line 4: KeyError: 'price'"),
        ("return lambda f: f['sparse']['user'].lengths()", "gave torch.int64; a tensor of floats"),
        ("return lambda f: [1.0]", "gave list; a tensor of floats is expected"),
        ("return lambda f: f['age'][:9]", r"output is \[9\] for 600 rows; one score per row"),
        ("return lambda f: f['age'].reshape(300, 2)", r"output is \[300, 2\] for 600 rows"),
        ("return lambda f: (f['age'] != f['age'][5]) / 0 * 0", "score of row 1 is nan"),
        ("return lambda f: 1 / (f['age'] - f['age'][5])", r"score of row \d is inf"),
    ],
)
def test_what_the_code_does_wrong_is_one_sentence(
    converted, data, tmp_path, capsys, body, sentence
):
    code = tmp_path / "model.py"
    code.write_text(f"import torch\n\ndef build(converted):\n    {body}\n")
    out = tmp_path / "out.parquet"
    assert main(["score", data, *torch_arguments(converted, code), "--out", str(out)]) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert re.search(sentence, error), error
    assert list(tmp_path.glob("*.parquet")) == []
    assert list(tmp_path.glob(".*.parquet*")) == []
