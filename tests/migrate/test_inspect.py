"""What `semisync inspect` says of rows: norms, and those worth a look."""

import json
import math
import pathlib

import pytest

import migrate
from semisync import cli
from tests.support.conversions import without_graph

TFRA = pathlib.Path(__file__).parent / "data" / "tfra"


def report(capsys, *argv):
    assert cli.main(["inspect", *map(str, argv), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["t", "half"])
def test_suspicious_rows_are_counted_and_named(checkpoints, capsys, name):
    found = report(capsys, checkpoints / "suspicious")["variables"]
    (table,) = [one for one in found if one["name"] == name]
    assert (table["rows"], table["dim"]) == (2000, 64)
    assert table["slots"] == (["Adagrad"] if name == "half" else ["Adam", "Adam_1"])
    assert table["not_finite"] == {"count": 2, "first": [7, 1999]}
    assert table["all_zero"] == {"count": 3, "first": [0, 11, 1500]}
    assert table["never_updated"] == {"count": 5, "first": [0, 1, 2, 3, 4]}
    assert table["norm_max"] == 24  # the root of 64 x 3 x 3
    assert math.isclose(table["norm_mean"], 24 * 1995 / 1998)


def test_the_text_names_the_first_rows(checkpoints, capsys):
    assert cli.main(["inspect", str(checkpoints / "suspicious")]) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    row = next(line for line in lines if line[0].strip() == "t" and "2,000" in line)
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells == [
        "t",
        "2,000",
        "Adam, Adam_1",
        "23.96",
        "2 (7, 1999)",
        "3 (0, 11, 1500)",
        "5 (0, 1, 2, 3, 4)",
    ]


def test_the_index_alone_gives_no_statistics(checkpoints, capsys):
    found = report(capsys, checkpoints / "suspicious", "--index")
    assert (found["variables"], found["hash_tables"]) == (None, None)
    assert len(found["tensors"]) == 5


def test_hash_tables_are_listed_with_their_slots(checkpoints, capsys):
    tables = {one["name"]: one for one in report(capsys, checkpoints / "deeprec")["hash_tables"]}
    assert (tables["user"]["kind"], tables["user"]["slots"]) == ("DeepRec", ["Adagrad"])
    assert (tables["user"]["rows"], tables["user"]["parts"]) == (7, 2)
    found = report(capsys, checkpoints / "lookup_tables")
    assert {one["name"]: one.get("rows") for one in found["hash_tables"]} == {
        "dense": 5,
        "plain": 5,
        "words": None,
    }
    assert found["variables"] == []


def test_a_directory_of_raw_tables_is_inspected_too(capsys):
    found = report(capsys, TFRA / "TFRADynamicEmbedding")
    assert found["hash_tables"][0]["slots"] == ["Adam_m", "Adam_v"]
    assert found["hash_tables"][0]["rows"] == 7


def test_damage_in_the_data_is_told_with_exit_3(tf2_checkpoints, tmp_path, capsys):
    for file in tf2_checkpoints.glob("suspicious.*"):
        data = bytearray(file.read_bytes())
        if "data" in file.name:
            data[1000] ^= 1
        (tmp_path / file.name).write_bytes(data)
    assert cli.main(["inspect", str(tmp_path / "suspicious")]) == 3
    assert "crc32c" in capsys.readouterr().err
    assert cli.main(["inspect", str(tmp_path / "suspicious"), "--index"]) == 0


def changed(folder, name, tmp_path, tensor):
    """A copy of a checkpoint in which one bit of `tensor` is wrong."""
    prefix = without_graph(folder, name, tmp_path)
    with migrate.open_checkpoint(prefix) as checkpoint:
        piece = checkpoint.stored.tensors[tensor].pieces[0]
        path = pathlib.Path(checkpoint.shard_paths()[piece.shard])
    data = bytearray(path.read_bytes())
    data[piece.offset] ^= 1
    path.write_bytes(data)
    return prefix


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("adagrad_ref", "global_step"),  # a scalar
        ("adam_ref", "beta2_power"),
        ("adam_ref", "user/Mine"),  # a slot whose name tells nothing without the MetaGraph
        ("dtypes", "strings"),
        ("dtypes", "int64"),  # no trained numbers
        ("lookup_tables", "words-keys"),  # a hash table without rows of floats
        ("deeprec", "user/part_0-partition_offset"),
    ],
)
def test_every_tensor_is_read_to_its_end(tf2_checkpoints, tmp_path, capsys, name, tensor):
    prefix = changed(tf2_checkpoints, name, tmp_path, tensor)
    assert cli.main(["inspect", str(prefix), "--index"]) == 0
    assert cli.main(["inspect", str(prefix)]) == 3
    err = capsys.readouterr().err
    assert f"tensor {tensor!r}" in err and err.count("\n") == 1


def test_it_says_that_all_was_read(checkpoints, capsys):
    found = report(capsys, checkpoints / "every_dtype")
    assert found["verified"] is True and found["notes"] == []
    assert report(capsys, checkpoints / "every_dtype", "--index")["verified"] is False
    assert cli.main(["inspect", str(checkpoints / "sgd")]) == 0
    assert " bytes, all read and verified\n" in capsys.readouterr().out
