"""Repeated rows, by their labels and scores.

A copy has the label of its row; rows that share their scores by chance, by rounding or by equal
features have labels of their own.

1. Rows with both scores equal are a group. Of each group with several rows the labels of the first
   two are compared, and as a control that of its first with that of the next such group's first,
   by the baseline's score: as likely to be positive, and certainly another row. Where the two of a
   group differ less than half as often, most of them are copies.
2. Rounded scores make groups of many rows, whose first two are rarely copies. If every row stands k
   times, however, all counts of equal rows are multiples of k, which n counts are by chance with
   probability k^-n.

Beyond MOST groups those are kept whose hash is low.
"""

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

MOST = 1 << 20  # groups kept
SURE = 4.5  # standard errors
ENOUGH = 20  # counts of equal rows that are all multiples of a number

# Odd, so that multiplying by one of them, modulo 2^64, is one to one.
_ODD = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


class Repeats(NamedTuple):
    """Rows that equal an earlier one, more than chance explains; about, beyond MOST groups."""

    rows: int
    times: int  # that every row stands; 1 where only some are repeated


def hashes(positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    """uint64 (n,): of each row's label and scores; bool and floating (n,) each."""
    return _mixed(_of_scores(baseline, candidate) ^ positive.astype(np.uint64))


class _Groups(NamedTuple):
    """Groups of rows of equal scores, rising by `scores`; several of one group before `_joined`."""

    scores: np.ndarray  # uint64 (n,): hashes
    baseline: np.ndarray  # float64 (n,)
    labels: np.ndarray  # int64 (n, 2): rows by label
    first: np.ndarray  # bool (n, 2): the labels of its first two rows


class RepeatCounter:
    """Finds repeated rows in blocks of any number."""

    def __init__(self, most: int = MOST) -> None:
        self._most, self._limit, self._share = most, np.uint64(2**64 - 1), 1.0
        self._held: List[_Groups] = []

    def add(self, positive: np.ndarray, baseline: np.ndarray, candidate: np.ndarray) -> None:
        """Counts checked rows: bool and floating (n,) each."""
        labels = np.stack([~positive, positive], axis=1).astype(np.int64)
        first = np.stack([positive, positive], axis=1)  # a single row has no second one yet
        of_scores = _of_scores(baseline, candidate)
        rows = _Groups(of_scores, baseline.astype(np.float64, copy=False), labels, first)
        self._held.append(_below(rows, self._limit))
        # At twice the limit, so that groups are joined once in `most` rows, not with every block.
        if sum(len(held.scores) for held in self._held) > 2 * self._most:
            groups = _joined(self._held)
            while len(groups.scores) > self._most:
                self._share /= 2
                self._limit = self._limit >> np.uint64(1)
                groups = _below(groups, self._limit)
            self._held = [groups]

    def found(self) -> Optional[Repeats]:
        """The repeats among all rows added; None where chance explains them, or may do so."""
        if not self._held:
            return None
        groups = _joined(self._held)
        self._held = [groups]
        counts = groups.labels[groups.labels > 0]
        times = int(np.gcd.reduce(counts)) if len(counts) >= ENOUGH else 1
        copies = are_copies(*_differing(groups))
        return repeats_of(int(counts.sum()), len(counts), times, copies, self._share)


def _below(groups: _Groups, limit: np.uint64) -> _Groups:
    low = groups.scores <= limit
    return groups if low.all() else _Groups(*(column[low] for column in groups))


def _joined(held: Sequence[_Groups]) -> _Groups:
    """One of each group, from pieces in the order of the rows."""
    whole = _Groups(*(np.concatenate(columns) for columns in zip(*held)))
    order = np.argsort(whole.scores, kind="stable")  # equal rows stay in the data's order
    scores, baseline, labels, first = (column[order] for column in whole)
    starts = np.flatnonzero(np.concatenate([[True], scores[1:] != scores[:-1]])[: len(scores)])
    # A piece of one row takes its second from the next piece, if that is of the same group; where
    # it is not, the group has one row, whose second label is not used.
    next_one = np.minimum(starts + 1, len(scores) - 1)
    one_row = labels[starts].sum(axis=1) == 1
    second = np.where(one_row, first[next_one, 0], first[starts, 1])
    return _Groups(
        scores[starts],
        baseline[starts],
        np.add.reduceat(labels, starts) if len(starts) else labels,
        np.stack([first[starts, 0], second], axis=1),
    )


def repeats_of(
    rows: int, cells: int, times: int, copies: bool, share: float = 1.0
) -> Optional[Repeats]:
    """The repeats, from counts; None where chance explains them, or may do so.

    Args:
        cells: rows that differ from one another in label or scores.
        times: the greatest common divisor of the counts of equal rows, of ENOUGH of them, else 1.
        copies: from `are_copies`.
        share: of all rows that were counted.
    """
    surplus = rows - rows // times if times > 1 else rows - cells
    if not surplus or times == 1 and not copies:
        return None
    return Repeats(round(surplus / share), times)


def are_copies(within: float, between: float) -> bool:
    """Whether two labels differ too rarely in groups, compared to as many pairs of groups."""
    sure = between - within > SURE * math.sqrt(between + within)
    return 2 * within <= between and sure


def _differing(groups: _Groups) -> Tuple[int, int]:
    """How often the labels of two rows differ within a group, and between groups."""
    several = groups.labels.sum(axis=1) > 1
    first = groups.first[several]
    within = int(np.count_nonzero(first[:, 0] != first[:, 1]))
    along = first[np.argsort(groups.baseline[several], kind="stable"), 0]
    return within, int(np.count_nonzero(along[1:] != along[:-1]))


def _of_scores(baseline: np.ndarray, candidate: np.ndarray) -> np.ndarray:
    old, new = (
        (scores.astype(np.float64) + 0.0).view(np.uint64)  # -0 is 0
        for scores in (baseline, candidate)
    )
    return _mixed(_mixed(old * _ODD[0]) + new * _ODD[1])


def _mixed(values: np.ndarray) -> np.ndarray:
    """Hashes of which each bit depends on every bit of a value (the finalizer of splitmix64)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values ^ (values >> np.uint64(31))
