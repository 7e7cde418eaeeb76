"""`semisync parity`: exit codes, the words on the terminal, and errors of one line."""

import hashlib
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from semisync.cli import main

COLUMNS = ["--label", "y", "--baseline-score", "old", "--candidate-score"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """scores.parquet with good, bad and unclear candidates; old and new to be joined."""
    folder = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(0)
    labels = rng.random(40_000) < 0.3
    logits = rng.normal(size=40_000) + labels

    def scores(noise):
        return 1 / (1 + np.exp(-logits - noise * rng.normal(size=40_000)))

    columns = {"id": np.arange(40_000), "y": labels.astype(np.int8), "old": scores(0)}
    columns.update(good=scores(0.01), bad=scores(3), unclear=scores(0.05))
    columns.update(user=np.arange(40_000) // 20, w=rng.random(40_000))
    table = pa.table(columns)
    pyarrow.parquet.write_table(table, folder / "scores.parquet")
    old = table.select(["id", "y", "old", "user"])
    new = table.select(["id", "good"]).take(rng.permutation(40_000))
    pyarrow.parquet.write_table(old, folder / "old.parquet")
    pyarrow.parquet.write_table(new, folder / "new.parquet")
    pyarrow.parquet.write_table(new.slice(5), folder / "short.parquet")
    return folder


@pytest.fixture
def parity_command(folder, tmp_path, monkeypatch, capsys):
    """Runs the subcommand inside the folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)

    def run(*arguments):
        try:
            code = main(["parity", *arguments, "--out", str(tmp_path / "out")])
        except SystemExit as stop:  # how argparse ends on a usage error
            code = stop.code
        return (code, *capsys.readouterr())

    return run


@pytest.mark.parametrize(
    ("candidate", "code", "words"),
    [
        ("good", 0, "EQUIVALENT: The candidate's AUC is the baseline's, to within the margin."),
        ("bad", 1, "NOT EQUIVALENT: The candidate's AUC is lower than the baseline's"),
        ("unclear", 2, "INCONCLUSIVE: These rows cannot tell whether"),
    ],
)
def test_exit_code_is_the_verdict(parity_command, tmp_path, candidate, code, words):
    exit_code, out, err = parity_command("scores.parquet", *COLUMNS, candidate)
    assert (exit_code, err) == (code, "")
    assert out.startswith(words)
    assert out.isascii(), "a log of any encoding must be able to hold it"
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert record["verdict"] == words.split(":")[0].replace(" ", "_")
    assert (tmp_path / "out" / "report.html").stat().st_size < 500_000


@pytest.mark.long
def test_inconclusive_may_pass_with_a_warning(parity_command, tmp_path):
    warned = ("scores.parquet", *COLUMNS, "unclear", "--inconclusive", "warn")
    code, out, err = parity_command(*warned)
    assert code == 0
    assert out.startswith("INCONCLUSIVE")
    assert err == (
        "semisync parity: warning: These rows cannot tell whether the AUCs differ by more than the "
        "margin.\n"
    )
    assert 'failures="0" errors="0" skipped="1"' in (tmp_path / "out" / "report.xml").read_text()
    assert parity_command(*warned[:-1], "fail")[0] == 2
    assert 'failures="1" errors="0" skipped="0"' in (tmp_path / "out" / "report.xml").read_text()
    code, _, err = parity_command("scores.parquet", *COLUMNS, "bad", "--inconclusive", "warn")
    assert (code, err) == (1, ""), "it excuses nothing else"


def test_a_title_that_is_not_text_is_written_all_the_same(parity_command, tmp_path):
    assert parity_command("scores.parquet", *COLUMNS, "good", "--title", "\udcff")[0] == 0
    assert r"EQUIVALENT: \\udcff" in (tmp_path / "out" / "report.md").read_text()


def test_json_says_what_was_compared(parity_command, tmp_path):
    arguments = [*COLUMNS, "good", "--group", "user", "--weight", "w", "--margin", "0.01"]
    assert parity_command("scores.parquet", *arguments, "--title", "Mine")[0] == 0
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (record["rows"], record["clusters"], record["weighted"]) == (40_000, 2000, True)
    assert (record["margin"], record["title"]) == (0.01, "Mine")
    provenance = record["provenance"]
    assert provenance["files"][0]["path"] == "scores.parquet"
    assert provenance["columns"]["candidate_score"] == "good"
    assert provenance["versions"]["numpy"] == np.__version__


@pytest.mark.long
def test_what_was_counted_in_histograms_is_known_by_its_hash(parity_command, folder, tmp_path):
    def origin():
        return json.loads((tmp_path / "out" / "report.json").read_text())["provenance"]

    def told(path):
        data = path.read_bytes()
        return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}

    memory = ["--memory", "1e-6", "--margin", "0.5"]
    assert parity_command("scores.parquet", *COLUMNS, "good", *memory)[0] == 0
    found = told(folder / "scores.parquet")
    assert origin()["files"] == [{"path": "scores.parquet", **found}]
    part = tmp_path / "one.part"
    assert parity_command("scores.parquet", *COLUMNS, "good", "--partial", str(part))[0] == 0
    assert parity_command("--merge", str(part), "--margin", "0.5")[0] == 0
    assert origin()["parts"] == [{"path": str(part), **told(part)}]


@pytest.mark.long
def test_two_files_joined_by_key_say_what_one_file_says(parity_command, tmp_path):
    more = ("--group", "user", "--margin", "0.01")
    report = tmp_path / "out" / "report.json"
    assert parity_command("scores.parquet", *COLUMNS, "good", *more)[0] == 0
    one = json.loads(report.read_text())
    two_files = ("old.parquet", "new.parquet", *COLUMNS, "good", "--key", "id")
    assert parity_command(*two_files, *more)[0] == 0
    two = json.loads(report.read_text())
    assert two["provenance"]["join"]["matched"] == 40_000
    for name in ("delta", "baseline", "candidate", "clusters", "score_difference"):
        assert two[name] == one[name]


def test_misses_can_be_allowed(parity_command):
    files = ("old.parquet", "short.parquet", *COLUMNS, "good", "--key", "id")
    code, _, err = parity_command(*files)
    assert code == 3
    assert "5 only in old.parquet, 0 only in short.parquet; --allow-misses" in err
    assert parity_command(*files, "--allow-misses")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.parquet", *COLUMNS, "good"], "none.parquet does not exist"),
        (["scores.parquet", *COLUMNS, "nope"], "no column 'nope'; it has: id, y, old, good, bad"),
        (["scores.parquet", *COLUMNS, "old"], "--candidate-score must name a second column"),
        (["scores.parquet", *COLUMNS[:-1]], "required: --candidate-score (or CANDIDATE, a second"),
        (["scores.parquet", *COLUMNS, "good", "--key", "user"], "is not a key: 38000 rows repeat"),
        (["scores.parquet", *COLUMNS, "good", "--allow-misses"], "--allow-misses joins two files"),
        (
            ["scores.parquet", *COLUMNS, "good", "--margin", "0"],
            "the margin is 0.0; a difference in AUC is expected",
        ),
        (["scores.parquet", *COLUMNS, "good", "--worst", "-3"], "--worst is -3; a number of rows"),
        (["scores.parquet", *COLUMNS, "good", "--memory", "-1"], "--memory is -1; gigabytes, 0"),
        (["scores.parquet", *COLUMNS, "good", "--memory", "nan"], "--memory is nan; gigabytes, 0"),
        (
            ["old.parquet", "./old.parquet", *COLUMNS, "old", "--key", "id"],
            "both models' scores would be column 'old' of old.parquet, which equals itself",
        ),
        (["scores.parquet", *COLUMNS, "good", "--margin", "x"], "argument --margin: invalid float"),
        (["scores.parquet", "--label", "y"], "arguments are required: --baseline-score"),
        (
            ["old.parquet", "short.parquet", *COLUMNS, "good"],
            "belong together by their place: name",
        ),
        (["old.parquet", "new.parquet", *COLUMNS, "good", "--key", "k"], "has no column 'k'"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_3(parity_command, tmp_path, arguments, sentence):
    code, out, err = parity_command(*arguments)
    assert (code, out) == (3, "")
    assert sentence in err.splitlines()[-1]
    assert "Traceback" not in err
    assert err.startswith("usage: ") or len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_out_that_is_a_file_is_refused(parity_command, tmp_path):
    (tmp_path / "out").write_text("in the way")
    code, _, err = parity_command("scores.parquet", *COLUMNS, "good")
    assert code == 3
    assert "the report cannot be written to" in err


@pytest.mark.long
def test_the_command_as_a_process(folder, tmp_path):
    command = [sys.executable, "-m", "semisync.cli", "parity", "scores.parquet", *COLUMNS, "bad"]
    command += ["--out", str(tmp_path)]
    done = subprocess.run([*command, "--margin", "0.5"], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 1


def test_all_that_is_missing_is_asked_for_at_once(monkeypatch, capsys):
    assert main(["parity"]) == 3
    told = capsys.readouterr().err
    for needed in ("BASELINE", "--label", "--baseline-score", "--candidate-score", "--out"):
        assert needed in told
    assert main(["parity", "old.parquet", "new.parquet"]) == 3
    told = capsys.readouterr().err
    for needed in ("--label", "--baseline-score", "--out"):
        assert needed in told
    assert "--candidate-score" not in told


@pytest.mark.parametrize("memory", ["4", "0"])
def test_json_is_printed_alone_and_is_the_report(parity_command, tmp_path, memory):
    arguments = ("scores.parquet", *COLUMNS, "good", "--json", "--memory", memory)
    code, out, err = parity_command(*arguments)
    record = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (code, err, json.loads(out)) == (0, "", record)


def test_json_takes_no_report(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert main(["parity", "scores.parquet", *COLUMNS, "bad", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "NOT_EQUIVALENT"
    assert main(["parity", "scores.parquet", *COLUMNS, "bad", "--json", "--partial", "x"]) == 3


@pytest.mark.few(2)
@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize("watched", [True, False])
def test_progress_is_shown_on_a_terminals_stderr_alone(
    parity_command, monkeypatch, memory, watched
):
    class Terminal(io.StringIO):
        def isatty(self):
            return watched

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    code, out, _ = parity_command("scores.parquet", *COLUMNS, "good", "--memory", memory)
    assert code == 0 and " rows, scores.parquet" not in out
    shown = terminal.getvalue()
    assert ("40,000 rows, scores.parquet" in shown) == watched
    assert shown.endswith("\r\033[K") == watched, "the line is gone"
