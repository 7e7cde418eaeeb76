"""Matching the rows of two files by a key that names each row once in either.

A wrong join makes a right verdict impossible and shows nowhere in the figures, so by default every
key of one file must be in the other, and no key may come twice in either.
"""

from typing import Any, NamedTuple, Sequence, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.inputs.checks import Column
from parity.io.columns import plain_chunks
from semisync.common.errors import BadInput


class Match(NamedTuple):
    """Row i of the joined sample is row baseline[i] of one file, row candidate[i] of the other."""

    baseline: np.ndarray  # int64 (matched,), rising
    candidate: np.ndarray  # int64 (matched,)
    only_baseline: int  # rows of the one file whose key the other lacks
    only_candidate: int


def match_keys(
    baseline: pa.ChunkedArray,
    candidate: pa.ChunkedArray,
    columns: Tuple[Column, Column],
    allow_misses: bool = False,
) -> Match:
    """Joins on equal keys.

    Args:
        baseline, candidate: keys without nulls, from `parity.io.keys.to_keys`. Where the types
            differ, numbers are compared as decimal text.
        columns: where each came from, for the messages.
        allow_misses: leave out rows without a partner instead of refusing them.

    Raises:
        BadInput: duplicate keys, misses unless allowed, and when nothing matches.
    """
    if baseline.type != candidate.type:
        baseline, candidate = (
            as_text(keys, at) for keys, at in zip((baseline, candidate), columns)
        )
    for keys, column in zip((baseline, candidate), columns):
        refuse_repeated(repeated(keys), column)
    match = matched(baseline, candidate)
    refuse_no_match(len(match.baseline), (baseline[0].as_py(), candidate[0].as_py()), columns)
    if not allow_misses:
        refuse_misses(match.only_baseline, match.only_candidate, columns)
    return match


def match_places(baseline: int, candidate: int, names: Tuple[str, str]) -> Match:
    """Matches two data sets, of so many rows each, row by row.

    Raises:
        BadInput: they have not equally many.
    """
    if baseline != candidate:
        raise BadInput(
            f"{names[0]} has {baseline:,} rows and {names[1]} {candidate:,}; without a key rows "
            "belong together by their place: name the columns (--key, key=) by which to join them"
        )
    return Match(np.arange(baseline), np.arange(baseline), 0, 0)


def in_another_order(
    baseline: pa.Table, candidate: pa.Table, shared: Sequence[str]
) -> Tuple[str, ...]:
    """A sentence on the first column that holds the same values on both sides, in other rows."""
    for name in filter(candidate.column_names.__contains__, shared):
        old, new = (plain_chunks(table[name]) for table in (baseline, candidate))
        if old.type != new.type or pa.types.is_nested(old.type) or pa.types.is_null(old.type):
            continue
        if not old.equals(new) and old.sort().equals(new.sort()):
            return (
                f"Both sides have the same values in column {name!r}, in another order, and rows "
                "were matched by their place: they seem not to belong together; name the columns "
                "(--key, key=) by which to join them.",
            )
    return ()


def matched(baseline: pa.ChunkedArray, candidate: pa.ChunkedArray) -> Match:
    """Joins keys of one type, none twice in either."""
    partner = pc.index_in(baseline, value_set=candidate.combine_chunks())
    rows = np.flatnonzero(pc.is_valid(partner).to_numpy())
    partner = pc.drop_null(partner).to_numpy().astype(np.int64)
    return Match(rows, partner, len(baseline) - len(rows), len(candidate) - len(rows))


class Repeated(NamedTuple):
    """Keys that come more than once."""

    surplus: int = 0  # rows with the key of an earlier one
    key: Any = None  # one of the keys
    times: int = 0


def repeated(keys: pa.ChunkedArray) -> Repeated:
    """The keys of one file that come more than once."""
    surplus = len(keys) - pc.count_distinct(keys).as_py()
    if not surplus:
        return Repeated()
    counts = pc.value_counts(keys)
    first = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    return Repeated(surplus, first["values"], first["counts"])


def refuse_repeated(keys: Repeated, column: Column) -> None:
    """Raises BadInput if a key comes twice."""
    if keys.surplus:
        raise BadInput(
            f"{column} is not a key: {keys.surplus} rows repeat the key of an earlier one, "
            f"{keys.key!r} comes {keys.times} times"
        )


def refuse_no_match(count: int, examples: Tuple[Any, Any], columns: Tuple[Column, Column]) -> None:
    """Raises BadInput if no key is in both files."""
    if not count:
        raise BadInput(
            f"no key of {columns[0]} (such as {examples[0]!r}) is in {columns[1]} "
            f"(such as {examples[1]!r})"
        )


def refuse_misses(only_baseline: int, only_candidate: int, columns: Tuple[Column, Column]) -> None:
    """Raises BadInput if a row has no partner."""
    if only_baseline or only_candidate:
        raise BadInput(
            f"the rows do not match by key {columns[0].name!r}: {only_baseline} only in "
            f"{columns[0].file}, {only_candidate} only in {columns[1].file}; --allow-misses "
            "leaves them out"
        )


def refuse_disagreement(
    count: int,
    ours: Tuple[Column, int, bool],
    theirs: Tuple[Column, int, bool],
    hint: str = "is the key right?",
) -> None:
    """Raises BadInput if labels disagree.

    Args:
        count: of how many joined rows.
        ours, theirs: the first such row's column of labels, row number and label in either file.
        hint: the likely cause.
    """
    if count:
        values = [f"{column.at(row)} is {int(label)}" for column, row, label in (ours, theirs)]
        raise BadInput(f"the labels of {count} joined rows disagree: {', '.join(values)}; {hint}")


def as_text(keys: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    """Keys to be compared with those of another type."""
    try:
        return keys.cast(pa.large_string())
    except pa.ArrowException as error:
        raise BadInput(
            f"{column} holds {keys.type}, which the other file's keys cannot be compared with"
        ) from error
