"""The sentence under the demo's table says what the figures say, whichever mode wins."""

import numpy as np
import pytest

from semisync.demo.finding import difference, sentence

LOSS, TIE, GAIN = (-0.012, -0.014, -0.010), (-0.001, -0.003, 0.001), (0.004, 0.002, 0.006)
SMALL_LOSS = (-0.003, -0.004, -0.002)


def modes(ours, theirs, balanced=TIE):
    figures = {"sync": {"batches_per_second": 30.0}}
    measured = (("semi-sync", 60.0, ours), ("balanced", 45.0, balanced), ("async", 80.0, theirs))
    for name, pace, minus in measured:
        minus = dict(zip(("delta", "low", "high"), minus))
        figures[name] = {"batches_per_second": pace, "minus_sync": minus}
    return figures


@pytest.mark.parametrize(
    "ours, theirs, meaning",
    [
        (TIE, LOSS, "semi-sync keeps what asynchronous training loses."),
        (GAIN, LOSS, "semi-sync keeps what asynchronous training loses."),
        (SMALL_LOSS, LOSS, "semi-sync keeps 75% of what asynchronous training loses."),
        (TIE, TIE, "AUC is no reason to leave asynchronous training."),
        (TIE, GAIN, "AUC is no reason to leave asynchronous training."),
        (SMALL_LOSS, TIE, "semi-sync is the worse choice for AUC on this log."),
        (LOSS, SMALL_LOSS, "semi-sync is the worse choice for AUC on this log."),
    ],
)
def test_the_sentence_says_who_loses(ours, theirs, meaning):
    said = sentence(modes(ours, theirs))
    assert meaning in said
    assert "2.00 times as fast as exact synchronous training and 0.75 times as fast as" in said
    assert "1.50 times as fast as exact synchronous training and 0.56 times as fast. Ag" in said
    assert "not the seed" in said


def test_the_verdicts_follow_the_intervals():
    said = sentence(modes(TIE, LOSS, balanced=GAIN))
    assert "balanced gains AUC (+0.0040, +0.0020 to +0.0060)" in said
    assert "semi-sync shows no difference in AUC beyond chance (-0.0010, -0.0030 to" in said
    assert "asynchronous training loses AUC (-0.0120, -0.0140 to -0.0100)" in said


def test_the_difference_is_paired_and_signed():
    rng = np.random.default_rng(0)
    labels = rng.random(2000) < 0.3
    good = labels + rng.normal(size=2000)
    bad = labels + 3 * rng.normal(size=2000)
    worse = difference(labels, good, bad)
    assert worse.sign == -1 and worse.low < worse.delta < worse.high < 0
    assert difference(labels, bad, good).sign == 1
    assert difference(labels, good, good) == (0, 0, 0)
