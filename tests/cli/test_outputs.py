"""A place that cannot be written is named before anything is read, and before anything is said."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from semisync.cli import main
from semisync.common.files import check_writable, replacing, write_text
from tests.support.require import ROOT, environment, shared

PARITY = ["none.parquet", "--label=y", "--baseline-score=p", "--candidate-score=q"]
COMMANDS = {
    "convert": ["none.ckpt", "{}"],
    "rewrite": ["none.meta", "{}", "--batches-per-step", "2"],
    "score": ["none.parquet", "--saved-model", "none", "--out", "{}"],
    "parity": [*PARITY, "--out", "{}"],
    "parity --partial": [*PARITY, "--partial", "{}"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_that_takes_no_file_is_named_first(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = name.split()[0]
    assert main([command, *(one.format("/proc/out") for one in COMMANDS[name])]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"semisync {command}: /proc/out cannot be written, since /proc takes no")
    assert err.count("\n") == 1


def test_the_plan_of_a_conversion_is_not_printed_where_nothing_can_be_written(capsys):
    prefix = shared("models", "haiy_dist_ps") / "model.ckpt-504"
    assert main(["convert", str(prefix), "/proc/out"]) == 3
    assert capsys.readouterr().out == ""


def test_a_place_is_checked_without_a_trace(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    check_writable(tmp_path / "new" / "folder")
    check_writable("relative")
    with pytest.raises(Exception, match="file/below cannot be written, since .*file takes no file"):
        check_writable(tmp_path / "file" / "below")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_two_threads_may_write_one_file_at_once(tmp_path):
    path = tmp_path / "file"
    with ThreadPoolExecutor(1) as other, replacing(path) as beside:
        beside.write_text("own")
        other.submit(write_text, path, "other").result()
        assert path.read_text() == "other"
    assert path.read_text() == "own"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.long
def test_tensorflows_log_does_not_precede_the_sentence(tmp_path):
    (tmp_path / "job.meta").write_bytes(np.random.default_rng(0).bytes(100))
    variables = environment(PYTHONPATH=str(ROOT))
    variables.pop("TF_CPP_MIN_LOG_LEVEL", None)
    done = subprocess.run(
        [sys.executable, "-m", "semisync.cli", "rewrite", "job.meta", "o", "--batches-per-step=2"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("semisync rewrite: ")
    assert done.stderr.count("\n") == 1
