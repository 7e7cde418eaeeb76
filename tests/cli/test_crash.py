"""An unexpected error is not an answer: exit code 4, a sentence, and the traceback."""

import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import SUBCOMMANDS, main, module_of

ARGUMENTS = {
    "demo": ["--data", "given", "--tf-python", "absent"],
    "simulate": ["--workers", "2", "--trace", "given"],
    "migrate": ["given", "--data", "d", "--label", "y", "--out", "out", "--tf-python", "absent"],
    "rewrite": ["given", "out", "--batches-per-step", "2"],
    "inspect": ["given"],
    "convert": ["given", "out"],
    "train": ["given", "--data", "given", "--out", "out"],
    "sequence": ["train", "given", "--data", "given", "--out", "out"],
    "verify": ["given", "out", "--tf-python", "absent"],
    "score": ["given", "--saved-model", "m", "--out", "out", "--tf-python", "absent"],
    "status": ["--zookeeper", "given", "--job", "ctr"],
    "config": ["show", "--zookeeper", "given", "--job", "ctr"],
    "launch": ["--local", "--ps", "1", "--workers", "1", "--", "given"],
    "parity": ["given", "--label", "y", "--baseline-score", "p", "--out", "out"],
}


def boom(*_, **__):
    raise AssertionError("it is\nbroken")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_a_crash_of_any_subcommand_ends_with_exit_code_4(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").write_bytes(b"")
    monkeypatch.setattr(module_of(name), "run", boom)
    assert main([name, *ARGUMENTS[name]]) == 4
    first, *rest = capsys.readouterr().err.splitlines()
    assert first == (
        f"semisync {name}: internal error while reading given: AssertionError: it is broken; this "
        "is a defect of semisync and no answer: please report it where you got semisync from, with "
        "the lines below"
    )
    assert rest[0] == "  Traceback (most recent call last):"
    assert "raise AssertionError" in "".join(rest)


def test_a_crash_while_the_arguments_are_declared_or_imported_is_one_too(monkeypatch, capsys):
    monkeypatch.setattr("semisync.commands.parity.configure", boom)
    assert main(["parity"]) == 4
    assert "internal error while reading the arguments" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "semisync.commands.parity", None)
    assert main(["parity"]) == 4
    halted = "ModuleNotFoundError: import of semisync.commands.parity halted"
    assert halted in capsys.readouterr().err


@pytest.mark.parametrize("columns", [["small", "large"], ["large", "small"]])
def test_a_score_of_1e200_gets_a_verdict_and_a_note(columns, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = [0.1, 0.9, 0.3, 0.7, 0.2, 0.8, 0.4, 0.6] * 50
    columns = dict(zip(("p", "q"), columns))
    table = {"y": [0, 1] * 200, "small": small, "large": [*small[:-1], 1e200]}
    pyarrow.parquet.write_table(pa.table(table), "scores.parquet")
    options = ["--label", "y", "--out", "out", "--baseline-score", columns["p"]]
    options += ["--candidate-score", columns["q"]]
    assert main(["parity", "scores.parquet", *options]) in (0, 1, 2)
    out, err = capsys.readouterr()
    assert err == ""
    side = "candidate" if columns["q"] == "large" else "baseline"
    if not out.startswith("EQUIVALENT"):
        assert f"Note: The {side}'s score in row 400 is 1e+200, one of 1 beyond +-1e+100." in out
