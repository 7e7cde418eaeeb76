"""`semisync simulate`: what it prints, and that no option is ignored in silence."""

import json

import numpy as np
import pytest

from semisync.cli import main
from semisync.simulate import read_traces

pytestmark = pytest.mark.one_tensorflow

SMALL = ["simulate", "--workers", "4", "--steps", "10"]


def write_trace(path, text):
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--batches-per-step", "0"], "--batches-per-step is a whole number of 1 or more, not 0"),
        (["--steps", "0"], "--steps is a whole number"),
        (["--slow-batches", "10%:5"], "expected two numbers A:B, not '10%:5'"),
        (["--slow-workers", "1.5:5"], "from 0 to 4, not 1.5"),
        (["--backup", "4"], "--backup is a whole number from 1 to 3, not 4"),
        (["--plot", "figure.gif"], "--plot writes .svg, .png, .pdf, not figure.gif"),
        (["--max-mean-staleness", "2"], "does not use --max-mean-staleness"),
        (["--advise", "--bound", "4"], "--advise does not use --bound"),
        (["--advise", "--modes", "async"], "--advise does not use --modes"),
        (["--advise", "--max-mean-staleness", "nan"], "--max-mean-staleness is a number"),
        (
            ["--advise", "--batches-per-step", "4", "--max-mean-staleness", "1"],
            "--advise with --batches-per-step does not use --max-mean-staleness",
        ),
        (["--trace", "TRACE", "--spread", "0.3"], "--trace does not use --spread"),
        (["--trace", "TRACE", "--demand", "100"], "--trace does not use --demand"),
    ],
)
def test_an_option_that_means_nothing_is_one_sentence(words, sentence, tmp_path, capsys):
    trace = write_trace(tmp_path / "trace.csv", "pause,run\n0.1,0.2\n")
    try:
        code = main(SMALL + [trace if word == "TRACE" else word for word in words])
    except SystemExit as end:  # argparse's own
        code = end.code
    printed = capsys.readouterr()
    assert (code, printed.out) == (3, "")
    assert sentence in printed.err.splitlines()[-1]


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["--" + name, "-1"]
            for name in ["servers", "cores", "payload", "seed", "in-flight", "bound"]
        ),
        *(
            ["--" + name, "-1"]
            for name in ["pause", "demand", "spread", "pull", "push", "apply", "latency"]
        ),
        ["--apply-step", "nan"],
        ["--mean-staleness", "-1"],
        ["--policy", "Threshold(-1)"],
        ["--workers", "0"],
        ["--steps", "1", "--batches-per-step", "1"],
        *(["--slow-batches", pair] for pair in ("2:5", "0.1:0")),
        *(["--slow-workers", pair] for pair in ("9:5", "1:0")),
        *(["--preemption", pair] for pair in ("0:5", "5:-1")),
        *(["--day", pair] for pair in ("0:5", "5:0")),
    ],
    ids=" ".join,
)
def test_a_number_that_cannot_be_is_refused_by_its_option(words, capsys):
    assert main(SMALL + words) == 3
    assert capsys.readouterr().err.startswith("semisync simulate: {}".format(words[0]))


def test_json_has_the_modes_and_what_is_proposed(capsys):
    assert main([*SMALL, "--modes", "async", "semi-sync", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["async", "semi-sync"]
    assert sum(found["semi-sync"]["staleness"].values()) == found["semi-sync"]["fates"]["admitted"]
    assert main([*SMALL, "--advise", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["batches_per_step", "bound", "servers", "semi-sync", "async"]


def test_a_day_that_was_not_simulated_as_a_whole_is_said(capsys):
    assert main([*SMALL, "--modes", "async", "--day", "10:2"]) == 0
    assert "s were simulated, of a day of 10 s: give more --steps" in capsys.readouterr().err
    assert main([*SMALL, "--modes", "async", "--day", "0.2:2"]) == 0
    assert capsys.readouterr().err == ""


def test_a_figure_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "figure.svg"
    assert main([*SMALL, "--modes", "async", "semi-sync", "--plot", str(path)]) == 0
    assert path.read_text().count("<svg") == 1


def test_the_last_line_of_a_worker_that_was_killed_is_left_out(tmp_path):
    cut = write_trace(tmp_path / "cut.csv", "pause,run\n0.1,0.2\n0.1,0.")
    ((pauses, runs),) = read_traces([cut])
    assert np.array_equal([pauses, runs], [[0.1], [0.2]])
