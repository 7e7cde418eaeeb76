"""`--plugin`: the commands over a server of one's own, and what they refuse."""

import json
import os
import subprocess

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import migrate
from semisync.cli import main
from semisync.common.errors import BadInput
from tests.servers.acme import source
from tests.training.test_by_id import by_ids


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The plug-in's file; the option alone makes it known."""
    monkeypatch.setenv("SEMISYNC_PLUGINS", "")
    (tmp_path / "acme_server.py").write_text(source())
    return str(tmp_path / "acme_server.py")


def test_the_way_of_the_page(job, path, tmp_path, capsys):
    out, rows = str(tmp_path / "converted"), str(tmp_path / "rows.parquet")
    named = ["--plugin", path]
    assert main(["inspect", job.prefix, *named]) == 0
    assert "user" in capsys.readouterr().out
    assert main(["convert", job.prefix, out, "--model", *named]) == 0
    assert main(["verify", job.prefix, out, *named]) == 0
    os.environ["SEMISYNC_PLUGINS"] = ""  # what was converted needs the plug-in no more
    before = job.rows("before")
    columns = {"user": before["user"], "items": before["items"].tolist()}
    pq.write_table(pa.table(columns), rows)
    scores = str(tmp_path / "scores.parquet")
    assert main(["score", "--converted", out, rows, "--out", scores, "--output", "logits"]) == 0
    found = pq.read_table(scores)["score"].to_numpy()
    logits = job.recorded["logits"]
    np.testing.assert_allclose(found, logits, rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_two_processes_train_on_as_one_does(job, path, interpreters, tmp_path):
    rows = {name: values.tolist() for name, values in job.rows("after").items()}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    common = ["train", job.prefix, "--plugin", path, "--data", str(tmp_path / "rows.parquet")]
    common += ["--label", "clicked", "--batch-size", "32", "--output", "logits", "--steps", "4"]
    found = []
    for name, more in (("one", []), ("two", ["--nproc", "2"])):
        given = [interpreters / "semisync", *common, "--out", tmp_path / name, *more]
        done = subprocess.run(given, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(by_ids(tmp_path / name / "checkpoints" / "step-00000004"))
    one, two = found
    assert one.keys() == two.keys() and "model.user_table.ids" in one
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-5, atol=1e-6)


def test_a_change_of_a_row_is_found(job, path, tmp_path):
    out = str(tmp_path / "converted")
    assert main(["convert", job.prefix, out, "--plugin", path]) == 0
    shard = job.dump / "user.1of2"
    data = bytearray(shard.read_bytes())
    data[-3] ^= 1  # of an accumulator
    shard.write_bytes(data)
    assert main(["verify", job.prefix, out]) == 1


def test_a_dump_alone_is_tables(job, path, tmp_path):
    out = tmp_path / "tables"
    assert main(["convert", str(job.dump), str(out), "--workers", "2", "--plugin", path]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    assert {table["ids"]["table"] for table in manifest["tables"]} == {"user", "item"}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            'found["row"], {',
            'found["row"][:, :1], {',
            r"rows \[4, 1\]; expected .*",
        ),
        ('found["id"], ', 'found["id"].astype("i4"), ', "a chunk has int32 ids"),
        ('{"Adagrad_accumulator": found', '{"Adagrad": found', "lacks the slot 'Adagrad_accum"),
        ("Shard(file, rows,", "Shard(file, rows + 1,", "gave 4 rows, and said that there are 5"),
        ("data.seek(HEAD.size)", "data.seek('x')", "read_tables of the plug-in .*TypeError"),
        ('magic != b"ACME"', 'magic == b"ACME"', "is no shard of Acme's"),
    ],
)
def test_what_it_reads_is_checked(job, plugin, before, after, said):
    text = plugin.read_text()
    assert before in text
    plugin.write_text(text.replace(before, after))
    with pytest.raises(BadInput, match=said):
        for table in migrate.open_hash_tables(job.prefix)["user"].slots.values():
            table.read()


def test_a_shard_that_is_cut_short_or_missing_is_refused(job, path, tmp_path, capsys):
    shard = job.dump / "item.0of2"
    whole = shard.read_bytes()
    for data, said in ((whole[:-4], "has been cut short"), (None, "lacks a shard")):
        shard.unlink() if data is None else shard.write_bytes(data)
        assert main(["convert", job.prefix, str(tmp_path / "out"), "--plugin", path]) == 3
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("no_such_module", "cannot be imported"),
        ("absent.py", "cannot be imported"),
        ("json", "has none of the functions read_tables, look_up, train"),
    ],
)
def test_a_plug_in_that_is_none_is_refused(job, path, capsys, named, said):
    assert main(["inspect", job.prefix, "--plugin", named]) == 3
    assert said in capsys.readouterr().err
