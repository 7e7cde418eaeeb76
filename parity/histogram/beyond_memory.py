"""The comparison of more rows than fit memory: counted once, and looked at once more where asked.

1. Blocks of checked rows are counted (parity.histogram.counts), within days and slices as well.
2. For groups and single rows they are put aside meanwhile and looked at again
   (parity.histogram.second_look).
3. The figures are those of parity.compare, with a certified bound (parity.histogram.compare).
"""

import dataclasses
from typing import Iterable, Optional

import numpy as np
import pyarrow as pa

from parity.histogram.binned_strata import days_of, estimates_within, slices_of
from parity.histogram.compare import checked, compare_summary
from parity.histogram.counts import Counts, Division, Kind
from parity.histogram.estimate import Estimate
from parity.histogram.second_look import Looks, Worst, put_aside, read_back
from parity.inputs.checks import check_margin
from parity.io.spill import Buckets
from parity.io.streams import Block
from parity.result import Comparison
from parity.verified import Verified


def count(blocks: Iterable[Block], kind: Kind, buckets: Optional[Buckets] = None) -> Counts:
    """Counts the rows.

    Args:
        buckets: where to put them aside, by group if they have one.
    """
    counts = Counts(kind)
    np.empty(1 << 24, np.int8)  # once freed, glibc keeps smaller arrays' memory at hand for reuse
    for rows, numbers, names, group in blocks:
        if not len(rows.positive):
            continue
        divisions = {name: _division(names[name]) for name in kind.columns}
        counts.add(rows, divisions)
        if buckets is not None:
            group = pa.chunked_array([pa.array(numbers)]) if group is None else group
            put_aside(buckets, rows, numbers, group, counts.codes(divisions))
    return counts


def compare_counts(
    counts: Counts, margin: float, verified: Optional[Verified] = None
) -> Comparison:
    """`parity.compare` of counted rows, with days and slices as they were counted."""
    check_margin(margin)
    found = compare_summary(counts.whole, margin, verified=verified)
    within = estimates_within(counts)
    return dataclasses.replace(
        found, days=days_of(counts, within, margin), slices=slices_of(counts, within, margin)
    )


def compare_blocks(
    blocks: Iterable[Block],
    kind: Kind,
    margin: float,
    grouped: bool = False,
    worst: int = 0,
    verified: Optional[Verified] = None,
) -> Comparison:
    """`parity.compare` of blocks of rows.

    Args:
        grouped: whether the rows have groups that vary together.
        worst: how many of the rows that pull the difference hardest to list.
        verified: the record that stands for the rows that rare faults take.
    """
    check_margin(margin)
    if not grouped and not worst:
        return compare_counts(count(blocks, kind), margin, verified)
    with Buckets() as buckets:
        counts = count(blocks, kind, buckets)
        whole, within = Estimate(checked(counts.whole)), estimates_within(counts)
        looks = Looks(whole, within, kind.day) if grouped else None
        hardest = Worst(whole, worst) if worst else None
        for table in buckets.tables():
            if not len(table):
                continue
            rows, numbers, codes = read_back(table)
            if looks is not None:
                looks.add(rows, codes)
            if hardest is not None:
                hardest.add(rows, numbers)
    by_group = None if looks is None else looks.whole()
    return dataclasses.replace(
        compare_summary(counts.whole, margin, by_group, whole, verified),
        days=days_of(counts, within, margin, looks),
        slices=slices_of(counts, within, margin, looks),
        worst=() if hardest is None else hardest.found(),
    )


def _division(names: pa.ChunkedArray) -> Division:
    """Rows divided by their values, as JSON can hold these."""
    encoded = names.combine_chunks().dictionary_encode()
    return Division(
        [
            value if isinstance(value, (int, float)) and value == value else str(value)  # not nan
            for value in encoded.dictionary.to_pylist()
        ],
        encoded.indices.to_numpy(),
    )
