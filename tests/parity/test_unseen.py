"""What AUC cannot see is said of an EQUIVALENT candidate; a slight difference has no cause."""

import dataclasses

import numpy as np
import pytest

import parity
from parity.inputs.logits import sigmoid
from parity.report.words.advice import what_to_do
from parity.report.words.verdict import headline
from parity.result import ROWS
from tests.parity.kinds import columns

RNG = np.random.default_rng(5)
LOGIT = RNG.normal(size=60_000) - 2
LABEL = RNG.random(60_000) < sigmoid(LOGIT)
BASELINE = sigmoid(LOGIT)


def diagnosed(candidate, margin=5e-4, baseline=BASELINE):
    found = parity.compare(LABEL, baseline, candidate, margin)
    return parity.diagnose(found, LABEL, baseline, candidate)


@pytest.mark.parametrize(
    ("candidate", "margin", "suspect", "says"),
    [
        (sigmoid(BASELINE), 5e-4, "scores on another scale", "log loss 0.375 and 0.736"),
        (LOGIT, 5e-4, "scores on another scale", "the candidate's are not"),
        (sigmoid(LOGIT + 0.5), 5e-4, "calibration", "PCOC 1 and 1.4"),
        (np.clip(BASELINE, 0.1, 1), 0.05, "clipped scores", "PCOC 1 and 1."),
    ],
)
def test_an_equivalent_candidate_that_is_calibrated_otherwise(candidate, margin, suspect, says):
    found = diagnosed(candidate, margin)
    assert found.verdict == "EQUIVALENT"
    assert "AUC cannot see" in headline(found) and says in headline(found)
    assert [(one.name, one.basis) for one in found.diagnosis] == [(suspect, ROWS)]
    assert "no reason" not in what_to_do(found)
    assert "its calibration is not" in what_to_do(found)


def test_no_reason_to_hold_back_takes_calibration_too():
    found = diagnosed(sigmoid(LOGIT + 0.001 * RNG.normal(size=len(LOGIT))))
    assert found.verdict == "EQUIVALENT" and found.diagnosis == ()
    assert "AUC and calibration give no reason to hold the candidate back" in what_to_do(found)
    logits = diagnosed(LOGIT + 1e-3, baseline=LOGIT)
    assert logits.verdict == "EQUIVALENT"
    assert "calibration was not compared" in what_to_do(logits)


def test_a_slight_difference_has_no_suspect():
    """Too few rows to exclude rare faults, and nothing that differs."""
    rows = slice(0, 3000)
    candidate = sigmoid(LOGIT[rows] + 0.002 * RNG.normal(size=3000))
    given = (LABEL[rows], BASELINE[rows], candidate)
    found = parity.diagnose(parity.compare(*given), *given)
    assert found.verdict == "INCONCLUSIVE" and 0 < abs(found.delta) < 2.5e-5
    assert found.diagnosis == ()


def test_the_headline_of_a_failed_gate_does_not_call_the_auc_equal():
    found = parity.require(diagnosed(BASELINE / 2), {"pcoc": 0.01, "ece": 0.01})
    assert (found.verdict, found.decision) == ("EQUIVALENT", "NOT_EQUIVALENT")
    said = "Required, and failed: PCOC. Required as well, and not decided: ECE."
    assert headline(found) == said


def test_by_groups_the_advice_counts_groups():
    labels, old, new = columns(rows=4000, noise=0.05)
    found = parity.compare(labels, old, new, margin=2e-3, clusters=np.arange(4000) // 10)
    assert found.verdict == "INCONCLUSIVE" and found.rows_to_settle is not None
    told = what_to_do(found)
    assert " groups like these" in told and "rows" not in told
    number = int(told.partition("about ")[2].partition(" groups")[0].replace(",", ""))
    assert number == pytest.approx(found.rows_to_settle / 10, rel=0.1)
    alone = dataclasses.replace(found, clusters=None)
    assert " rows like these" in what_to_do(alone)
