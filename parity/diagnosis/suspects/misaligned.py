"""Rows that do not belong together: shuffled, shifted by some rows, joined by the wrong key.

The rows are cut into blocks, in the order of the file. Where the two models' scores are
uncorrelated in some blocks, and are not in the others (or the scores of all rows have the same
distribution), the scores there belong to other rows. The counterfactual: within those blocks the
candidate's scores are dealt out again, in the order of the baseline's. The score is the share of
the squared differences that this removes; a model that merely ranks at random has another
distribution, which this does not repair.

Rows that were mixed here and there, or sorted, leave no such block. They show where the candidate's
scores in the rows that differ are, digit by digit, scores of the baseline.
"""

from typing import List, Optional, Tuple

import numpy as np

from parity.diagnosis.apart import Apart
from parity.diagnosis.case import Case
from parity.inputs.rows import Rows
from parity.result import ROWS, Suspect
from parity.stats.roc import auc

NAME = "scores of other rows"
BLOCKS = 64  # at most
BLOCK = 128  # rows at least, so that a correlation of 0.36 stands out
SIGMAS = 4  # |r| sqrt(rows) of unrelated scores stays below it
RELATED = 0.5  # correlation of the other blocks
SPREAD = 0.5  # least standard deviation of a block, of all rows'; less in files sorted by score
# Of the rows that differ, whose scores are looked for on the other side:
LEAST = 30  # distinct scores
DISTINCT = 0.5  # share of distinct scores: two models' rounded ones are equal without any mistake
SAME = 0.9  # share of scores that the other side has
SAMPLE = 1000  # rows that show whether the others are worth a look
MOST_FLOAT32 = 1 << 21  # rows; more float32 scores meet by chance
LONGEST = 1 << 16  # rows in which a shift is looked for

REMEDY = (
    "Write a key with every score and join by it (--key), rather than by position; check that the "
    "candidate's reader neither shuffles nor drops rows."
)


def suspect(case: Case) -> Optional[Suspect]:
    """Looks for blocks of uncorrelated scores."""
    rows, apart = case.rows, case.apart
    if rows is None or apart is None or len(apart.old) < BLOCK or not apart.deviations.all():
        return None
    stretches = _unrelated_stretches(apart)
    share = _mended(apart, stretches) if stretches else 0.0
    if share <= 0:
        return _digit_by_digit(case, rows, apart)
    return Suspect(NAME, share, tuple(_evidence(rows, apart, stretches, share)), REMEDY, ROWS)


def _unrelated_stretches(apart: Apart) -> List[Tuple[int, int]]:
    """[(first row, row after the last)] of scores that do not belong together, though others do."""
    rows = len(apart.old)
    size = max(BLOCK, -(-rows // BLOCKS))
    spans = [(first, first + size) for first in range(0, rows - size + 1, size)]
    spans[-1] = (spans[-1][0], rows)
    correlations = np.array([_correlation(apart.old[a:b], apart.new[a:b]) for a, b in spans])
    wide = [
        min(apart.old[a:b].std() / apart.deviations[0], apart.new[a:b].std() / apart.deviations[1])
        for a, b in spans
    ]
    unrelated = (np.abs(correlations) * np.sqrt(size) < SIGMAS) & (np.array(wide) > SPREAD)
    for place in np.flatnonzero(unrelated).tolist():  # unless a few far scores hide the correlation
        of_ranks = _correlation(
            *(_ranks(one[slice(*spans[place])]) for one in (apart.old, apart.new))
        )
        unrelated[place] = abs(of_ranks) * np.sqrt(size) < SIGMAS
    if not unrelated.any():
        return []
    if not unrelated.all() and np.median(correlations[~unrelated]) < RELATED:
        return []
    return _stretches(spans, unrelated)


def _digit_by_digit(case: Case, rows: Rows, apart: Apart) -> Optional[Suspect]:
    """Rows whose scores stand in other rows of the other side, value for value."""
    differing = apart.differing
    # The narrower type: a score that was written as float32 is found in a float64 column by it.
    kind = min(rows.baseline.dtype, rows.candidate.dtype)
    if kind == np.float32 and len(differing) > MOST_FLOAT32:
        return None
    old, new = (scores.astype(kind) for scores in (rows.baseline, rows.candidate))
    old, new = np.sort(old), new[differing]
    if _common(old, new[:SAMPLE]) < SAME or len(np.unique(new)) < max(LEAST, DISTINCT * len(new)):
        return None
    common = _common(old, new)
    if common < SAME:
        return None
    dealt = apart.new.copy()
    dealt[differing] = _dealt(apart.old[differing], apart.new[differing])
    share = 1 - float(apart.weight @ (dealt - apart.old) ** 2) / apart.total
    evidence = (
        f"{differing.mean():.1%} of the rows differ, the first of them row "
        f"{int(differing.argmax()) + 1:,}, and {common:.1%} of the candidate's scores "
        "there are, digit by digit, the baseline's of other rows.",
        case.auc_in_words(dealt, "With the scores dealt out in the baseline's order"),
    )
    return Suspect(NAME, share, evidence, REMEDY, ROWS)


def _common(known: np.ndarray, scores: np.ndarray) -> float:
    """The share of the scores that is among the known ones, which rise."""
    places = np.minimum(np.searchsorted(known, scores), len(known) - 1)
    return float((known[places] == scores).mean()) if len(scores) else 0.0


def _dealt(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The scores of one side, in the order of the other's."""
    dealt = np.empty_like(new)
    dealt[np.argsort(old)] = np.sort(new)
    return dealt


def _evidence(
    rows: Rows, apart: Apart, stretches: List[Tuple[int, int]], share: float
) -> List[str]:
    where = np.zeros(len(apart.old), bool)
    for first, last in stretches:
        where[first:last] = True
    named = ", ".join(f"{first + 1:,} to {last:,}" for first, last in stretches[:3])
    sentences = [
        f"In rows {named}{' and others' if len(stretches) > 3 else ''} ({where.mean():.0%} of all) "
        f"the scores correlate with {_correlation(apart.old[where], apart.new[where]):+.2f}"
        + (
            f", in the others with {_correlation(apart.old[~where], apart.new[~where]):+.2f}."
            if not where.all()
            else ", but their distributions are alike."
        )
    ]
    labels = rows.positive[where]
    if 0 < np.count_nonzero(labels) < len(labels):
        old, new = (auc(labels, scores[where]) for scores in (rows.baseline, rows.candidate))
        sentences.append(f"There the candidate's AUC is {new:.3f}, the baseline's {old:.3f}.")
    sentences.append(
        f"Dealing the candidate's scores out again there removes {share:.1%} of the squared "
        "differences."
    )
    first, last = max(stretches, key=lambda stretch: stretch[1] - stretch[0])
    shift = _shift(apart.old[first:last][:LONGEST], apart.new[first:last][:LONGEST])
    if shift:
        way = "later" if shift > 0 else "earlier"
        sentences.append(f"They fit when each row takes the score {abs(shift):,} rows {way}.")
    return sentences


def _correlation(old: np.ndarray, new: np.ndarray) -> float:
    old, new = old - old.mean(), new - new.mean()
    size = float(np.sqrt((old @ old) * (new @ new)))
    return float(old @ new) / size if size else 0.0


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(np.float64)


def _stretches(spans: List[Tuple[int, int]], chosen: np.ndarray) -> List[Tuple[int, int]]:
    """The chosen spans, those that follow each other put together."""
    stretches: List[Tuple[int, int]] = []
    for (first, last), take in zip(spans, chosen.tolist()):
        if take and stretches and stretches[-1][1] == first:
            stretches[-1] = (stretches[-1][0], last)
        elif take:
            stretches.append((first, last))
    return stretches


def _mended(apart: Apart, stretches: List[Tuple[int, int]]) -> float:
    """Share of the squared differences that dealing the scores out again removes."""
    gone = 0.0
    for first, last in stretches:
        old, new = apart.old[first:last], apart.new[first:last]
        before = np.sum((new - old) ** 2)
        gone += float(before - np.sum((np.sort(new) - np.sort(old)) ** 2))
    return gone / float(np.sum((apart.new - apart.old) ** 2))


def _shift(old: np.ndarray, new: np.ndarray) -> int:
    """By how many rows the candidate's scores come late; 0 where no shift makes them fit."""
    # Padded with zeros to twice the rows: a cyclic correlation would wrap around.
    size = 1 << (2 * len(old) - 1).bit_length()
    spectra = [np.fft.rfft(values - values.mean(), size) for values in (old, new)]
    fit = np.fft.irfft(np.conj(spectra[0]) * spectra[1], size)
    best = int(np.argmax(fit))
    if fit[best] < RELATED * np.sqrt(old.var() * new.var()) * len(old):
        return 0
    return best - size if best > size // 2 else best
