"""What is required beside AUC decides with it, by an interval where the metric has one."""

import dataclasses
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.metrics import roc_auc_score

import parity
from parity.comparison import compare_rows
from parity.gates import METRICS, parse_requirements
from parity.inputs.rows import checked_rows
from parity.report.markdown import markdown
from parity.report.words.details import slices_in_words
from parity.stats.equivalence import Verdict
from semisync.cli import main
from semisync.common.errors import BadInput, UsageError
from tests.parity.kinds import columns, comparison
from tests.parity.records import PASSED
from tests.support.verdicts import cases

COLUMNS = ["--label", "y", "--margin", "0.1", "--baseline-score", "old", "--candidate-score"]
METRICS_OF_ALL = {"logloss": 0.5, "ne": 0.5, "pcoc": 0.5, "ece": 0.5, "gauc": 0.5, "pr_auc": 0.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """scores.parquet: a candidate of half the probability, and one that fails in one slice."""
    folder = tmp_path_factory.mktemp("gates")
    labels, old, new = columns(20_000, 0.01)
    place = np.arange(len(labels))
    country = np.array(["de", "fr", "it", "pl"])[place % 4]
    broken = np.where(country == "pl", np.random.default_rng(0).permutation(new), new)
    table = {"y": labels, "old": old, "good": new, "half": old / 2, "broken": broken}
    table.update(country=country, day=place % 5, lonely=np.where(place, place % 5, 9))
    table.update(user=place // 10)
    pyarrow.parquet.write_table(pa.table(table), folder / "scores.parquet")
    return folder


@pytest.fixture
def run(folder, tmp_path, monkeypatch, capsys):
    """Runs the subcommand; returns exit code, terminal, report.json and report.xml's cases."""
    monkeypatch.chdir(folder)

    def command(*arguments):
        out = str(tmp_path / "out")
        code = main(["parity", "scores.parquet", *COLUMNS, *arguments, "--out", out])
        files = pathlib.Path(out)
        record = json.loads((files / "report.json").read_text())
        return code, capsys.readouterr().out, record, (files / "report.xml").read_text()

    return command


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["4", "0"])
def test_half_the_probability_cannot_pass_where_calibration_is_required(run, memory):
    code, out, record, xml = run("half", "--require", "pcoc=0.01", "--memory", memory)
    assert (code, record["verdict"], record["decision"]) == (1, "EQUIVALENT", "NOT_EQUIVALENT")
    first, *rest = out.splitlines()
    assert first == "NOT EQUIVALENT: Required, and failed: PCOC.", (
        "nothing says that AUCs are equal"
    )
    sentence = "Required: PCOC within +-0.01: failed"
    assert any(sentence in line and "with 90% confidence between" in line for line in rest)
    assert 'classname="parity.required" name="PCOC within 0.01"' in xml
    assert 'failures="1"' in xml


def test_half_the_probability_is_seen_where_nothing_is_required(run):
    code, out, record, _ = run("half")
    half = record["candidate"]["pcoc"]
    assert (code, record["decision"]) == (0, "EQUIVALENT")
    assert f"PCOC {2 * half:.4g} and {half:.4g}." in out


@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.long
def test_a_slice_at_random_scores_cannot_pass_where_slices_are_required(run, memory):
    slices = ("broken", "--slice", "country", "--memory", memory)
    code, out, record, xml = run(*slices, "--require-slices")
    assert (code, record["verdict"], record["decision"]) == (1, "EQUIVALENT", "NOT_EQUIVALENT")
    assert record["gates"][0]["failed"] == ["pl"]
    assert (
        "Required: each of the slices of country within +-0.1: failed (not equivalent: pl)." in out
    )
    assert 'name="slices of country within 0.1"' in xml
    code, out, record, _ = run(*slices)
    assert code == 0
    assert "Warning: 1 of 4 slices of country differ by more than the margin: pl." in out
    assert run("good", *slices[1:], "--require-slices")[0] == 0
    code, out, _, _ = run("broken", *slices[1:], "--margin", "0.001")
    assert (code, "Warning" in out) == (1, False), "the verdict says so already"


@pytest.mark.long
def test_days_are_required_like_slices(run):
    code, out, record, _ = run("good", "--day", "lonely", "--require-days")
    assert (code, record["verdict"], record["decision"]) == (2, "EQUIVALENT", "INCONCLUSIVE")
    assert record["gates"][0]["undecided"] == ["9"], "a day of one row"
    assert "AUC is settled, and what was required as well is not." in out
    assert run("good", "--day", "day", "--require-days")[0] == 0


def test_the_mean_of_the_days_is_required_with_them():
    series = comparison("days").days
    days = tuple(day._replace(verdict=Verdict.EQUIVALENT) for day in series.days)
    for verdict in Verdict:
        mean = series._replace(days=days, verdict=verdict)
        found = parity.require(dataclasses.replace(comparison("days"), days=mean), {}, days=True)
        assert found.gates[0].verdict is verdict


def test_the_difference_in_normalised_entropy_is_that_of_the_two():
    found = parity.require(comparison("plain"), {"ne": 0.05})
    old, new = (side.calibration.ne for side in (found.baseline, found.candidate))
    assert found.gates[0].delta == pytest.approx(new - old, rel=1e-9)


def test_a_gate_across_its_margin_is_not_decided(run):
    arguments = ("good", "--require", "logloss=1e-6", "pcoc=0.5", "--require", "gauc=0.5")
    arguments += ("--group", "user")
    code, out, record, xml = run(*arguments)
    assert (code, record["decision"]) == (2, "INCONCLUSIVE")
    told = "Required as well, and not decided: log loss. Required as well, and met: PCOC, GAUC."
    assert out.splitlines()[0].endswith(told)
    assert 'failures="1"' in xml
    code, _, record, xml = run(*arguments, "--inconclusive", "warn")
    assert (code, record["decision"]) == (0, "INCONCLUSIVE")
    assert 'failures="0"' in xml and 'skipped="1"' in xml


@pytest.mark.long
def test_every_metric_can_be_required(run):
    wanted = [f"{metric}={margin}" for metric, margin in METRICS_OF_ALL.items()]
    code, _, record, _ = run("good", "--group", "user", "--require", *wanted)
    assert code == 2
    assert {gate["name"] for gate in record["gates"]} == set(METRICS) == set(METRICS_OF_ALL)
    points = {gate["name"] for gate in record["gates"] if gate["interval"] is None}
    assert points == {"ece", "pr_auc"}


@pytest.mark.parametrize("memory", ["4", "0"])
def test_a_value_without_an_interval_decides_nothing(run, memory):
    code, out, record, _ = run("good", "--require", "ece=0.5", "pr_auc=0.5", "--memory", memory)
    assert (code, record["verdict"], record["decision"]) == (2, "EQUIVALENT", "INCONCLUSIVE")
    assert "a value without an interval, which decides nothing." in out
    assert "Require what has an interval: ECE has none, and no number of rows decides it." in out


@pytest.mark.few(1)
@pytest.mark.parametrize("by_group", [False, True])
def test_paired_differences_are_the_same_beyond_memory(run, by_group):
    more = ["--group", "user"] if by_group else []
    exact, counted = (run("good", *more, "--memory", memory)[2] for memory in ("4", "0"))
    for name in ("logloss_difference", "pcoc_difference", "gauc_difference"):
        if exact[name] is None:
            assert counted[name] is None and not by_group
            continue
        allowance = exact[name].pop("allowance")
        assert counted[name].pop("allowance") == pytest.approx(allowance, rel=0.05)
        interval = exact[name].pop("interval")
        assert counted[name].pop("interval") == pytest.approx(interval)
        assert counted[name] == pytest.approx(exact[name])


def test_a_requirement_is_judged_as_the_auc_is():
    """One positive in 20,000 rows ruined: three more would move the loss beyond the margin."""
    labels, old, _ = columns(20_000)
    new = old.copy()
    sound = parity.compare(labels, old, new, 0.1, verified=PASSED)
    new[np.flatnonzero(labels)[0]] = 1e-6
    found = parity.compare(labels, old, new, 0.1, verified=PASSED)
    bare = parity.compare(labels, old, old, 0.1)
    margin = {"logloss": 0.0025}
    (gate,) = parity.require(found, margin).gates
    assert max(map(abs, gate.interval)) < 0.0025
    assert (gate.verdict, gate.reason) == ("INCONCLUSIVE", "carriers")
    (gate,) = parity.require(bare, {"logloss": 0.002}).gates
    assert (gate.verdict, gate.reason) == ("INCONCLUSIVE", "rare_faults")
    text = markdown(parity.require(bare, {"logloss": 0.002}), "Mine")
    assert "but so few rows cannot exclude rare faults that matter" in text
    assert "hand in the record" in text
    (gate,) = parity.require(sound, {"logloss": 0.002}).gates
    assert gate.verdict == "EQUIVALENT"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--require", "f1=0.1"], "'f1' is not a metric that can be required; there are logloss"),
        (["--require", "pcoc"], "pcoc is required without a margin above 0, such as pcoc=0.01"),
        (["--require", "pcoc=-1"], "pcoc is required without a margin above 0"),
        (["--require", "pcoc=1", "--require", "pcoc=2"], "--require names pcoc twice"),
        (["--require", "auc>=70"], "auc>=70 is required; an AUC between 0 and 1 is expected"),
        (["--require", "auc>=0.7", "auc>=0.8"], "--require names auc> twice"),
        (["--require", "auc"], "'auc' is not a metric that can be required; there are logloss"),
        (["--require", "gauc=0.1"], "--require gauc needs --group, which is not given"),
        (["--require-slices"], "--require-slices needs --slice, which is not given"),
        (["--require-days"], "--require-days needs --day, which is not given"),
    ],
)
def test_a_requirement_that_cannot_be_decided_is_refused(
    folder, tmp_path, monkeypatch, capsys, arguments, sentence
):
    monkeypatch.chdir(folder)
    more = ["--out", str(tmp_path / "out")]
    assert main(["parity", "scores.parquet", *COLUMNS, "good", *arguments, *more]) == 3
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_calibration_of_logits_cannot_be_required():
    with pytest.raises(BadInput, match="PCOC is required, but there is none. Log loss, .* logits"):
        parity.require(comparison("logits"), {"pcoc": 0.1})
    with pytest.raises(UsageError, match="slices are required, but this comparison has none"):
        parity.require(comparison("plain"), {}, slices=True)


def test_junit_fails_by_gate():
    found = dataclasses.replace(comparison("slices"), gates=())
    found = parity.require(found, {"pcoc": 1e-9, "logloss": 0.5}, slices=True)
    outcomes = cases(found)
    assert outcomes[("parity.required", "PCOC within 1e-09")] == "failure"
    assert outcomes[("parity.required", "log loss within 0.5")] is None
    assert outcomes[("parity.required", "slices of os within 0.01")] == "failure"


def test_requirements_are_read_as_they_are_written():
    found = parse_requirements(["pcoc=0.01", "ece=1e-3", "auc>=0.7"])
    assert found == ({"pcoc": 0.01, "ece": 1e-3}, 0.7)
    assert parse_requirements([]) == ({}, None)


@pytest.mark.few(1)
@pytest.mark.parametrize("memory", ["4", "0"])
@pytest.mark.parametrize(("least", "code", "told"), [(0.7, 0, "met"), (0.9, 1, "failed")])
def test_an_auc_can_be_required_of_both_models(run, memory, least, code, told):
    found, out, record, xml = run("good", "--require", f"auc>={least}", "--memory", memory)
    assert (found, record["verdict"]) == (code, "EQUIVALENT")
    (gate,) = record["gates"]
    assert (gate["name"], gate["least"], gate["margin"]) == ("auc", least, None)
    assert gate["failed"] == (["baseline", "candidate"] if code else [])
    low = record["baseline"]["auc"] - 1.645 * record["baseline"]["standard_error"]
    sentence = f"Required: AUC of at least {least}: {told}. With 90% confidence the baseline's lies"
    assert f"{sentence} between {low:.3f}" in out
    assert f'name="AUC of at least {least}"' in xml


@pytest.mark.long
def test_an_auc_across_the_one_required_is_not_decided(run):
    auc = run("good")[2]["candidate"]["auc"]
    code, out, record, _ = run("good", "--require", f"auc>={auc:.5f}")
    assert (code, record["decision"]) == (2, "INCONCLUSIVE")
    assert record["gates"][0]["undecided"] == ["baseline", "candidate"]


def resampled(figure, labels, old, new, groups, times=400):
    """Standard deviation of a figure over bootstrap samples of whole groups."""
    rng = np.random.default_rng(0)
    order = np.argsort(groups, kind="stable")
    rows = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    values = []
    for _ in range(times):
        drawn = rng.integers(0, len(rows), len(rows))
        taken = [rows[i] for i in drawn]
        again = np.repeat(np.arange(len(drawn)), [len(t) for t in taken])
        chosen = np.concatenate(taken)
        values.append(figure(labels[chosen], old[chosen], new[chosen], again))
    return np.std(values)


def pcoc(labels, old, new, _):
    return (new.sum() - old.sum()) / labels.sum()


def gauc_by_group(labels, old, new, groups):
    """(difference in AUC, rows) of each group that has both labels."""
    found = []
    for group in np.unique(groups):
        of_group = groups == group
        if 0 < labels[of_group].sum() < of_group.sum():
            aucs = [roc_auc_score(labels[of_group], s[of_group]) for s in (old, new)]
            found.append((aucs[1] - aucs[0], of_group.sum()))
    return np.array(found).T


@pytest.mark.parametrize("clustered", [False, True])
def test_the_difference_in_pcoc_and_its_error_are_those_of_a_bootstrap(clustered):
    labels, old, new = columns(2000, 0.5)
    groups = np.arange(2000) // 10
    new = new * np.random.default_rng(3).lognormal(0, 0.2, 200)[groups]
    new = new.clip(1e-6, 1 - 1e-6)
    found = compare_rows(checked_rows(labels, old, new, groups if clustered else None), 0.1)
    found = found.pcoc_difference
    assert found.delta == pytest.approx(pcoc(labels, old, new, None))
    alone = groups if clustered else np.arange(2000)
    assert found.standard_error == pytest.approx(resampled(pcoc, labels, old, new, alone), rel=0.12)


def test_the_difference_in_gauc_and_its_error_are_those_of_a_bootstrap():
    labels, old, new = columns(600, 0.5)
    groups = np.arange(600) // 12
    found = parity.compare(labels, old, new, clusters=groups).gauc_difference
    aucs, rows = gauc_by_group(labels, old, new, groups)
    assert found.delta == pytest.approx(np.average(aucs, weights=rows))
    drawn = np.random.default_rng(0).integers(0, len(aucs), (2000, len(aucs)))
    bootstrap = (aucs[drawn] * rows[drawn]).sum(1) / rows[drawn].sum(1)
    assert found.standard_error == pytest.approx(bootstrap.std(), rel=0.1)


def test_weights_move_the_paired_differences_as_repeated_rows_do():
    labels, old, new = columns(600, 0.5)
    weights, groups = np.arange(600) % 3 + 1, np.arange(600) // 12
    weighted = checked_rows(labels, old, new, groups, weights)
    again = np.repeat(np.arange(600), weights)
    repeated = checked_rows(labels[again], old[again], new[again], groups[again])
    found = compare_rows(weighted, 0.1), compare_rows(repeated, 0.1)
    for figure in ("pcoc_difference", "gauc_difference"):
        one, other = (getattr(comparison, figure) for comparison in found)
        assert one.delta == pytest.approx(other.delta)
        assert one.standard_error == pytest.approx(other.standard_error)


def test_eight_slices_that_pass_and_one_that_differs_are_no_contradiction():
    names = np.arange(40_000) % 8
    labels, old, new = columns(40_000, 0.02)
    new = np.where(names == 3, (new + 0.02 * labels).clip(0.001, 0.999), new)
    parts = parity.compare_slices(labels, old, new, names, 0.2)
    sentence = slices_in_words("os", parts)
    assert sentence == (
        "os: of 8 slices 8 equivalent. A difference that is not chance (q < 0.1) but within the "
        "margin: 3."
    )
