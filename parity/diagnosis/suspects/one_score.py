"""One side gives many rows the same score: a default where features were missing, or a limit.

Such a score, of which a side may have two, is that of a hundredth of the rows or more, ten times
as many as have the next most frequent one; and the side has not so few different scores that it
merely rounds. It is

    a limit     if it is the side's least or largest, and nearly all of its rows are among as many
                that the other side ranks lowest, or highest; both limits are one suspect
    a default   if the other side's scores of its rows vary as those of all rows do

The score is the share of the distance in its rows beyond their share of the rows.
"""

from typing import Iterator, NamedTuple, Optional

import numpy as np

from parity.diagnosis.case import Case
from parity.result import ROWS, Suspect

DEFAULT = "one score for many rows"
CLIPPED = "clipped scores"
LEAST = 0.01  # of the rows
TIMES = 10  # as many rows as have the next most frequent score
FEWER = 4  # times as few distinct scores in the other rows are rounded ones
BEYOND = 0.9  # of a limit's rows, that the other side has there as well
SPREAD = 0.5  # standard deviation of the other side's scores of a default's rows, of all rows'

SIDES = ("baseline", "candidate")


class _Frequent(NamedTuple):
    """Rows of one side, bool (n,), that have one score, or one of its two limits."""

    rows: np.ndarray
    name: str
    words: str
    remedy: str


def suspect(case: Case) -> Optional[Suspect]:
    """The frequent score of either side with the largest share of the distance."""
    apart, rows = case.apart, case.rows
    if apart is None or rows is None:
        return None
    pairs = (rows.baseline, apart.new), (rows.candidate, apart.old)
    found = [
        (apart.share(frequent.rows), frequent)
        for side, (scores, others) in zip(SIDES, pairs)
        for frequent in _frequent(case, side, scores, others)
    ]
    share, best = max(found, key=lambda one: one[0], default=(0.0, None))
    if best is None or not share:
        return None
    return Suspect(
        best.name,
        share,
        (
            best.words,
            f"They have {share:.0%} of the difference between the scores beyond that.",
            case.auc_in_words(apart.mended(best.rows), "With the baseline's scores on those rows"),
        ),
        best.remedy,
        ROWS,
    )


def _frequent(case: Case, side: str, scores: np.ndarray, others: np.ndarray) -> Iterator[_Frequent]:
    """A side's default, and its limits."""
    values, counts = np.unique(scores, return_counts=True)
    if len(counts) < 3:
        return
    order = np.argpartition(-counts, 2)[:3]
    order = order[np.argsort(-counts[order])].tolist()
    least = max(LEAST * len(scores), TIMES * int(counts[order[2]]))
    limits = np.zeros(len(scores), bool)
    told = []
    for code in order[:2]:
        if counts[code] < least:
            continue
        rows = scores == values[code]
        if len(values) * FEWER <= len(np.unique(others[~rows])):
            continue
        share = float(rows.mean())
        end = "least" if code == 0 else "largest" if code == len(values) - 1 else None
        if end and _is_limit(rows, others, share, end == "largest"):
            limits |= rows
            told.append(f"{share:.1%} its {end}, {float(values[code]):.6g}")
        elif others[rows].std() >= SPREAD * others.std() > 0:
            yield _Frequent(
                rows,
                DEFAULT,
                f"The {side} gives {case.rows_in_words(rows)}, one score, "
                f"{float(values[code]):.6g}, where the other model's vary as in all rows.",
                "Find out which rows have it: it may stand for features that were missing or for "
                "rows that were not scored; leave them out, or score them.",
            )
    if told:
        yield _Frequent(
            limits,
            CLIPPED,
            f"The {side} gives {' and '.join(told)}: they are those that the other model has "
            "beyond it.",
            f"Write the {side}'s scores without clipping them, in a type that can hold them.",
        )


def _is_limit(rows: np.ndarray, others: np.ndarray, share: float, largest: bool) -> bool:
    edge = np.quantile(others, 1 - share if largest else share)
    beyond = others[rows] >= edge if largest else others[rows] <= edge
    return bool(beyond.mean() >= BEYOND)
