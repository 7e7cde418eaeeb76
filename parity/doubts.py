"""Warnings beside a verdict: the limits of its figures.

A mix-up of files looks like perfect parity, and rows that were left out were not compared; neither
shows in the figures. Nor do two models that do not rank: shuffled labels give both an AUC of 0.5,
and one score that stands for many rows gives both the same ties. Such models are not found
EQUIVALENT.
"""

from statistics import NormalDist
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from parity.formatting import LONGEST_NAME, clipped, some_of
from parity.inputs.rows import Rows
from parity.result import Side
from parity.stats.equivalence import Reason, Verdict
from parity.stats.parts import Part
from parity.stats.repeats import RepeatCounter, Repeats
from parity.stats.strata import Days

MOST_TIED = 0.2  # of the pairs: five equally frequent scores tie as many
_BLOCK = 1 << 18  # rows that are looked at together for repeats
BY_CHANCE = 0.001  # how often shuffled labels may give an AUC significantly off 0.5

SAME_SCORES = (
    "The candidate's score equals the baseline's in every row. Two models that were trained or run "
    "apart differ at least in last digits: make sure that these are not one model's scores twice."
)

SAME_RUN = (
    "A run of the candidate has the scores of a run of the baseline, in every row: make sure that "
    "these are not one run's scores twice."
)

FIRST_RUNS = (
    "What is required beside AUC, the slices and the days were judged by the first run of either "
    "side."
)


def of_scores(baseline: np.ndarray, candidate: np.ndarray) -> Tuple[str, ...]:
    """SAME_SCORES where no row differs; scores are (n,) each."""
    return (SAME_SCORES,) if np.array_equal(baseline, candidate) else ()


def of_runs(shared: bool) -> Tuple[str, ...]:
    """SAME_RUN where a run is on both sides."""
    return (SAME_RUN,) if shared else ()


def of_rows(rows: Rows) -> Tuple[str, ...]:
    """`of_repeats` of rows that are taken to be independent, as without clusters."""
    if rows.clusters is not None:
        return ()
    counter = RepeatCounter()
    for first in range(0, len(rows.positive), _BLOCK):
        block = slice(first, first + _BLOCK)
        counter.add(rows.positive[block], rows.baseline[block], rows.candidate[block])
    return of_repeats(counter.found(), len(rows.positive))


def of_repeats(repeats: Optional[Repeats], rows: int) -> Tuple[str, ...]:
    """A sentence on how many of the `rows` equal an earlier one, if chance does not explain it."""
    if repeats is None:
        return ()
    every = f", as if every row stood {repeats.times:,} times" if repeats.times > 1 else ""
    return (
        f"{repeats.rows:,} of {rows:,} rows ({_share(repeats.rows, rows)}) equal an earlier row in "
        f"label and both scores{every}; chance does not explain it. Rows that stand more than once "
        "make the interval too narrow: leave copies out (--key refuses them), or name what such "
        "rows share (--group).",
    )


def of_ranking(sides: Mapping[str, Side], pairs: int) -> Tuple[Optional[Reason], Tuple[str, ...]]:
    """Why models that do not rank are not EQUIVALENT, if one is such, and a sentence on each.

    Args:
        sides: each model's figures, by its name.
        pairs: of a positive and a negative row.
    """
    reasons, sentences = [], []
    for name, side in sides.items():
        away = NormalDist().inv_cdf(1 - BY_CHANCE / 2) * side.standard_error
        if side.tied_pairs >= MOST_TIED * pairs:
            reasons.append(Reason.TIES)
            sentences.append(
                f"The {name} gives {side.tied_pairs / pairs:.0%} of the pairs of a positive and a "
                "negative row one score: make sure that none stands for rows that were not scored."
            )
        elif abs(side.auc - 0.5) <= away:
            reasons.append(Reason.CHANCE)
            sentences.append(
                f"The {name}'s AUC, {side.auc:.5f}, cannot be told from 0.5, which is guessing: "
                "make sure that labels and scores are those of the same rows."
            )
    return min(reasons, key=list(Reason).index, default=None), tuple(sentences)


def of_files(files: Sequence[Mapping[str, Any]]) -> Tuple[str, ...]:
    """Names the first file that is a copy of another.

    Args:
        files: `parity.io.identity.FileIdentity.to_json` of each.
    """
    known: Dict[str, str] = {}
    for file in files:
        path = known.setdefault(file["sha256"], file["path"])
        if path != file["path"]:
            return (f"{file['path']} is a copy of {path} (SHA-256 {file['sha256'][:12]}…).",)
    return ()


def of_misses(join: Mapping[str, int], baseline: str, candidate: str) -> Tuple[str, ...]:
    """A sentence on how many rows a join left out, and which share.

    Args:
        join: rows "matched", "only_baseline" and "only_candidate".
        baseline, candidate: the names of the data sets.
    """
    matched = join["matched"]
    left_out = []
    for path, only in ((baseline, join["only_baseline"]), (candidate, join["only_candidate"])):
        if only:
            share = _share(only, matched + only)
            left_out.append(f"{only:,} of {matched + only:,} rows of {path} ({share})")
    if not left_out:
        return ()
    return (
        f"Left out: {' and '.join(left_out)}, whose keys the other file lacks. The verdict is on "
        f"the {matched:,} rows that both have.",
    )


def of_parts(slices: Sequence[Tuple[str, Sequence[Part]]], days: Optional[Days]) -> Tuple[str, ...]:
    """Slices and days that are surely not equivalent, where they were not required to be."""
    kinds: List[Tuple[str, Sequence[Part]]] = [
        (f"slices of {clipped(name, LONGEST_NAME)}", parts) for name, parts in slices
    ]
    if days:
        kinds.append(("days", days.days))
    sentences = []
    for kind, parts in kinds:
        names = [part.name for part in parts if part.verdict is Verdict.NOT_EQUIVALENT]
        if names:
            sentences.append(
                f"{len(names):,} of {len(parts):,} {kind} differ by more than the margin: "
                f"{some_of(names)}. They do not decide, as they were not required to be equivalent."
            )
    return tuple(sentences)


def _share(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.1f}%" if share >= 1 else f"{share:.2g}%"
