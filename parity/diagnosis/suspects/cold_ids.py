"""Ids that one side never saw: their rows are all zero, untrained, or missing there.

1. With both models' tables: ids whose row is cold on one side alone. The score is the share of the
   distance in the rows that have one of them; without a column of ids (--ids), the share of such
   ids among those that either side trained.
2. By the scores: ids at which the models part. Those whose rows lie farther apart than the mean in
   one half of the rows are looked for in the other half, and the other way round, so that chance
   chooses none. The score is the share of the rows that have one. They are cold unless
   they are more than HOT times as frequent as other ids: then they are "some ids".
3. By rarity: rows that have an id of few occurrences. The score is their share.

2 and 3 are symptoms, as rare ids differ first whatever went wrong, and give way to 1 where that has
half of their share. Where one side's table alone is known, its cold ids are looked for in the rows,
and are a symptom as well: the other side may have as many.
"""

from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from parity.diagnosis.apart import Apart
from parity.diagnosis.case import Case
from parity.diagnosis.facts import matching_table
from parity.inputs.ids import Ids
from parity.result import ROWS, SETTINGS, SYMPTOM, Suspect

NAME = "cold ids"
SOME = "some ids"
HOT = 3  # times as frequent as other ids, on average
SIDES = ("baseline", "candidate")
REMEDY = (
    "Check that every partition and id of the table was converted and is looked up by the same "
    "rule (mod or div, hash, offset), and that rows of ids new to a side begin as in training."
)
REMEDY_OF_SOME = (
    "Compare the rows of these ids in both tables, and the features that only they have: they are "
    "not rare, so that it is not for want of training that they differ."
)


def suspect(case: Case) -> Optional[Suspect]:
    """The strongest of the three findings."""
    tables, apart = _cold_tables(case), case.apart
    if apart is None:
        return _without_rows(tables)
    patterns: List[_Pattern] = []
    places = 2 * len(case.ids)
    for column, ids in case.ids.items():
        of_column = (
            _by_tables(apart, tables, column, ids),
            _by_scores(apart, column, ids, places),
            _by_rarity(apart, column, ids, places),
        )
        patterns += filter(None, of_column)
    if not patterns:
        return _without_rows(tables)
    # The narrower of two that are as good.
    best = max(patterns, key=lambda pattern: pattern.share * (1 - pattern.rows.mean()))
    proven = [one for one in patterns if one.basis == ROWS and one.share >= best.share / 2]
    best = max(proven, key=lambda pattern: pattern.share, default=best)
    return Suspect(
        NAME if best.cold else SOME,
        best.share,
        (
            *best.evidence,
            f"Rows with one of them in {best.column} are {best.rows.mean():.1%} of all and have "
            f"{best.share:.0%} of the difference between the scores beyond that.",
            case.auc_in_words(apart.mended(best.rows), "With the baseline's scores on those rows"),
        ),
        REMEDY if best.cold else REMEDY_OF_SOME,
        best.basis,
    )


class _Pattern(NamedTuple):
    """Rows, bool (n,), whose ids in a column have something in common."""

    share: float
    rows: np.ndarray
    column: str
    evidence: Tuple[str, ...]
    basis: str
    cold: bool = True


class _Cold(NamedTuple):
    """Which ids of a table are cold, bool (rows,); None for a side whose table is not known."""

    old: Optional[np.ndarray]
    new: Optional[np.ndarray]

    def suspicious(self) -> np.ndarray:
        """bool (rows,): cold on one side alone, as far as is known."""
        if self.old is None or self.new is None:
            known = self.new if self.old is None else self.old
            assert known is not None  # one side at least has the table
            return known
        return self.old != self.new

    def in_words(self, table: str) -> Iterator[str]:
        """Whose ids they are, and the first of them."""
        both = self.old is not None and self.new is not None
        for side, cold in enumerate((self.old, self.new)):
            only = np.zeros(0, np.int64)
            if cold is not None:
                only = np.flatnonzero(cold & self.suspicious())
            if len(only):
                yield (
                    f"{len(only):,} of the {len(self.suspicious()):,} ids of {table} are all zero "
                    f"or untrained in the {SIDES[side]}{' alone' if both else ''}: "
                    f"{', '.join(map(str, only[:5].tolist()))}{', ...' if len(only) > 5 else '.'}"
                )


def _cold_tables(case: Case) -> Dict[str, _Cold]:
    """The tables, by the baseline's name if it has them; an id beyond a table's end is cold."""
    sides = [{} if facts is None else facts.cold for facts in (case.baseline, case.candidate)]
    tables: Dict[str, _Cold] = {}
    for name, old in sides[0].items():
        same = matching_table(name, sides[1])
        if same is None:
            tables[name] = _Cold(old, None)
            continue
        new = sides[1][same]
        rows = max(len(old), len(new))
        tables[name] = _Cold(
            *(np.pad(cold, (0, rows - len(cold)), constant_values=True) for cold in (old, new))
        )
    for name, new in sides[1].items():
        if matching_table(name, sides[0]) is None:
            tables[name] = _Cold(None, new)
    return {name: cold for name, cold in tables.items() if cold.suspicious().any()}


def _by_tables(apart: Apart, tables: Dict[str, _Cold], column: str, ids: Ids) -> Optional[_Pattern]:
    table = matching_table(ids.table or column, tables)
    numbers = _numbers(ids)
    if table is None or numbers is None:
        return None
    cold = tables[table]
    suspicious = cold.suspicious()
    touched = (numbers >= 0) & (numbers < len(suspicious))
    touched[touched] = suspicious[numbers[touched]]
    known = cold.old is not None and cold.new is not None
    rows, words = ids.rows_with(touched), tuple(cold.in_words(table))
    return _pattern(apart, rows, column, words, ROWS if known else SYMPTOM)


def _by_scores(apart: Apart, column: str, ids: Ids, places: int) -> Optional[_Pattern]:
    distinct, code = np.unique(ids.values, return_inverse=True)
    row, squares = ids.row_numbers(), apart.residuals()
    far = np.zeros((2, len(distinct)), bool)
    for half in (0, 1):
        within = row % 2 == half
        count = np.bincount(code[within], minlength=len(distinct))
        total = np.bincount(code[within], squares[row[within]], len(distinct))
        far[1 - half] = total > float(squares.mean()) * count  # looked for in the other half
    both = far.all(axis=0)
    weight = np.bincount(code, squares[row], len(distinct)) * both
    first = [str(distinct[i]) for i in np.argsort(-weight)[:5] if weight[i]]
    named = f": {', '.join(first)}{', ...' if both.sum() > 5 else ''}" if first else ""
    words = (
        f"The models part at {int(both.sum()):,} of the {len(distinct):,} ids in {column}{named}."
    )
    found = _pattern(apart, ids.rows_with(far[row % 2, code]), column, (words,), SYMPTOM, places)
    if found is None:
        return None
    count = np.array(
        [np.bincount(code[row % 2 == half], minlength=len(distinct)) for half in (0, 1)]
    )
    others = count.all(axis=0) & ~both  # ids of both halves, as those that part are
    often = [float(count[:, ids].sum() / max(1, ids.sum())) for ids in (both, others)]
    return found._replace(cold=often[0] <= HOT * often[1])


def _by_rarity(apart: Apart, column: str, ids: Ids, places: int) -> Optional[_Pattern]:
    _, code, count = np.unique(ids.values, return_inverse=True, return_counts=True)
    rarest = np.full(ids.rows, np.iinfo(np.int64).max)  # occurrences of a row's rarest id
    np.minimum.at(rarest, ids.row_numbers(), count[code])
    power = np.ceil(np.log2(rarest)).astype(np.int64)  # at most 2^power
    of_rows, scatter = (
        np.cumsum(np.bincount(power, weights, 64))
        for weights in (apart.weight, apart.weight * apart.residuals())
    )
    best = int(np.argmax(scatter / max(float(scatter[-1]), 1e-300) - of_rows))
    words = f"The models part at the ids in {column} that occur {1 << best:,} times or less here."
    places *= len(np.unique(power))
    return _pattern(apart, power <= best, column, (words,), SYMPTOM, places)


def _pattern(
    apart: Apart,
    rows: np.ndarray,
    column: str,
    evidence: Tuple[str, ...],
    basis: str,
    places: int = 1,
) -> Optional[_Pattern]:
    share = apart.share(rows, places)
    return _Pattern(share, rows, column, evidence, basis) if share else None


def _without_rows(tables: Dict[str, _Cold]) -> Optional[Suspect]:
    """The table with the largest share of ids that are cold on one side alone."""
    suspects = [
        Suspect(
            NAME,
            float(
                np.count_nonzero(cold.old != cold.new) / np.count_nonzero(~(cold.old & cold.new))
            ),
            tuple(cold.in_words(table)),
            REMEDY,
            SETTINGS,
        )
        for table, cold in tables.items()
        if cold.old is not None and cold.new is not None
    ]
    return max(suspects, key=lambda suspect: suspect.score, default=None)


def _numbers(ids: Ids) -> Optional[np.ndarray]:
    """The ids as numbers of rows; None where they are words."""
    if ids.values.dtype.kind in "iu":
        return ids.values
    try:
        return ids.values.astype(np.int64)
    except (ValueError, OverflowError):
        return None
