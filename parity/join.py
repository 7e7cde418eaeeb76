"""Matching the rows of two files by a key that names each row once in either.

A wrong join makes a right verdict impossible and shows nowhere in the figures, so by default every
key of one file must be in the other, and no key may come twice in either.
"""

from typing import NamedTuple, Tuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from parity.checks import Column
from semisync.errors import BadInput


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
        baseline, candidate: keys without nulls, from `parity.columns.to_names`. Where the types
            differ, numbers are compared as decimal text.
        columns: where each came from, for the messages.
        allow_misses: leave out rows without a partner instead of refusing them.

    Raises: BadInput for duplicate keys, for misses unless allowed, and when nothing matches.
    """
    if baseline.type != candidate.type:
        baseline, candidate = (
            _as_text(keys, at) for keys, at in zip((baseline, candidate), columns)
        )
    for keys, column in zip((baseline, candidate), columns):
        _refuse_duplicates(keys, column)
    partner = pc.index_in(baseline, value_set=candidate.combine_chunks())
    found = pc.is_valid(partner).to_numpy()
    rows = np.flatnonzero(found)
    only_baseline, only_candidate = len(baseline) - len(rows), len(candidate) - len(rows)
    if not len(rows):
        raise BadInput(
            f"no key of {columns[0]} (such as {baseline[0].as_py()!r}) is in {columns[1]} "
            f"(such as {candidate[0].as_py()!r})"
        )
    if (only_baseline or only_candidate) and not allow_misses:
        raise BadInput(
            f"the rows do not match by key {columns[0].name!r}: {only_baseline} only in "
            f"{columns[0].file}, {only_candidate} only in {columns[1].file}; --allow-misses "
            "leaves them out"
        )
    partner = pc.drop_null(partner).to_numpy().astype(np.int64)
    return Match(rows, partner, only_baseline, only_candidate)


def _as_text(keys: pa.ChunkedArray, column: Column) -> pa.ChunkedArray:
    try:
        return keys.cast(pa.large_string())
    except pa.ArrowException as error:
        raise BadInput(
            f"{column} holds {keys.type}, which the other file's keys cannot be compared with"
        ) from error


def _refuse_duplicates(keys: pa.ChunkedArray, column: Column) -> None:
    surplus = len(keys) - pc.count_distinct(keys).as_py()
    if not surplus:
        return
    counts = pc.value_counts(keys)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    raise BadInput(
        f"{column} is not a key: {surplus} rows repeat the key of an earlier one, "
        f"{repeated['values']!r} comes {repeated['counts']} times"
    )
