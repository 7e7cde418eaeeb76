"""Why a verdict is INCONCLUSIVE: headline, caption and advice follow it."""

import functools
import pathlib
import re

import numpy as np
import pytest

import parity
from parity.histogram.compare import compare_summary
from parity.histogram.summary import Summary
from parity.report.terminal import lines
from parity.report.words.advice import what_to_do
from parity.report.words.verdict import explanation, headline
from parity.stats.equivalence import Reason
from tests.parity.records import PASSED
from tests.support.verdicts import CASES


@functools.lru_cache(maxsize=None)
def withheld(reason):
    """A comparison that is INCONCLUSIVE for this reason."""
    rng = np.random.default_rng(0)
    labels = np.arange(24_000) % 2 == 0
    baseline = labels + rng.random(24_000) / 2
    candidate = baseline.copy()
    if reason is Reason.INTERVAL:
        return CASES["INCONCLUSIVE"]
    if reason is Reason.LONE_RUN:
        runs = [baseline + 1e-3 * rng.random(24_000) for _ in range(3)]
        return parity.compare_runs(labels, runs[:2], runs[2:], verified=PASSED)
    if reason is Reason.COUNTS:
        summary = Summary()
        rounded = np.round(baseline + rng.random(24_000), 2)
        summary.add(labels, rounded, rounded)
        return compare_summary(summary)
    if reason is Reason.TIES:
        return parity.compare(labels, labels // 2, labels // 2 + 1)
    if reason is Reason.CHANCE:
        return parity.compare(rng.permutation(labels), baseline, candidate, 0.01)
    if reason is Reason.OBSERVATIONS:
        labels = np.arange(7000) % 100 == 50
        baseline = np.arange(7000) + labels * 3000.0
        candidate = baseline + 1.5 * (np.arange(7000) == 50)
        return parity.compare(labels, baseline, candidate, verified=PASSED)
    if reason is Reason.CARRIERS:  # many carriers, each of which is a lot
        candidate[np.flatnonzero(labels)[:12]] = 0.25
        return parity.compare(labels, baseline, candidate, margin=8e-4, verified=PASSED)
    return parity.compare(labels[:4000], baseline[:4000], candidate[:4000])


SAYS = {  # what the headline says, and the advice
    Reason.COUNTS: ("Counts in histograms leave", "Compare the rows in memory"),
    Reason.INTERVAL: ("These rows cannot tell", "equal models would be found equivalent"),
    Reason.LONE_RUN: ("cannot show how far its runs spread", "Train a second run of the model"),
    Reason.TIES: ("many rows one score", "Look at the labels"),
    Reason.CHANCE: ("cannot be told from 0.5", "Look at the labels"),
    Reason.OBSERVATIONS: ("cannot vouch for it", "settle it four times out of five"),
    Reason.CARRIERS: ("carry the standard error", "settle it four times out of five"),
    Reason.RARE_FAULTS: ("cannot exclude rare faults", "hand in the record"),
}


@pytest.mark.parametrize("reason", list(Reason))
def test_headline_caption_and_advice_follow_the_reason(reason):
    found = withheld(reason)
    assert (found.verdict, found.reason) == ("INCONCLUSIVE", reason)
    why, what = SAYS[reason]
    assert why in headline(found)
    assert what in what_to_do(found)
    inside = max(map(abs, found.interval)) < found.margin
    assert (why in explanation(found)) == (inside or reason is Reason.COUNTS)
    assert ("Here the bar lies inside, but" in explanation(found)) == (
        inside and reason is not Reason.COUNTS
    )


@pytest.mark.parametrize("reason", list(Reason))
def test_advice_that_does_not_apply_is_not_given(reason):
    found = withheld(reason)
    told = what_to_do(found)
    for many in re.findall(r"about ([\d,]+) rows", told):
        assert int(many.replace(",", "")) > found.rows
    assert ("the difference may well be near" in told) <= (reason is Reason.INTERVAL)
    if reason in (Reason.COUNTS, Reason.LONE_RUN, Reason.TIES, Reason.CHANCE):
        assert found.rows_to_settle is None, "no number of rows would help"
        assert "more rows" not in told.partition(":")[0]


def test_carriers_that_decide_are_noted_however_many_they_are():
    found = withheld(Reason.CARRIERS)
    assert found.rare_failures.carriers > 10
    assert found.p_equivalence < 0.05
    told = "\n".join(lines(found, {}))
    assert "About 12 rows, or clusters, carry the standard error" in told
    allowance = f"{found.rare_failures.allowance:.2g}"
    assert f"Three more rows like them would move the AUC by {allowance}" in told
    page = parity.report_section(found)
    assert "equivalent inside the band" not in page
    assert "of the margin or more, by the interval alone" in page


def test_the_table_of_verdicts_has_every_reason():
    page = (pathlib.Path(__file__).parents[2] / "docs" / "prove" / "verdict.md").read_text("utf-8")
    table = page.partition("# The verdict\n")[2].partition("\n## ")[0]
    named = re.findall(r"^\|.*`INCONCLUSIVE`, `(\w+)`", table, re.MULTILINE)
    assert named == [reason.value for reason in Reason]


def test_no_number_is_named_where_none_is_honest():
    """Of groups the next may be larger than all before; a few of them tell of no number."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(40), 100)
    labels = rng.random(4000) < 0.3
    baseline = rng.normal(size=4000) + labels
    candidate = baseline + 0.1 * rng.normal(size=40)[group] * (group < 12)
    found = parity.compare(labels, baseline, candidate, clusters=group)
    assert (found.reason, found.rows_to_settle) == ("interval", None)
    assert "no number can be named that would settle it" in what_to_do(found)
