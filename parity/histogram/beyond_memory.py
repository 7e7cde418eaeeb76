"""The comparison of more rows than fit memory: counted once, and read once more where asked.

1. Blocks of checked rows are counted (parity.histogram.counts), within days and slices as well.
2. For groups and single rows they are stored meanwhile and read once more
   (parity.histogram.second_pass).
3. The figures are those of parity.compare, with a certified bound (parity.histogram.compare).
"""

import dataclasses
from typing import Iterable, List, Optional, Tuple

import numpy as np
import pyarrow as pa

from parity import doubts
from parity.histogram.compare import checked, compare_summary, notes_on_bound
from parity.histogram.counts import Counts, Division, Kind
from parity.histogram.estimate import Estimate
from parity.histogram.runs import RunCounts, Sides
from parity.histogram.second_pass import Groups, Within, Worst
from parity.histogram.stored_rows import put_aside, read_back
from parity.inputs.checks import check_margin
from parity.io.blocks import Block
from parity.io.store import Store
from parity.result import Comparison
from parity.runs import concluded_runs
from parity.stats.parts import Part, with_q
from parity.stats.repeats import RepeatCounter
from parity.stats.strata import Days, days_of, error_of_alike
from parity.verified import Verified


def count(
    blocks: Iterable[Block],
    kind: Kind,
    store: Optional[Store] = None,
    repeats: Optional[RepeatCounter] = None,
    runs: Optional[RunCounts] = None,
) -> Counts:
    """Counts the rows.

    Args:
        store: where to put them aside, if they are to be read once more.
        repeats: looks for rows that stand more than once.
        runs: counts further training runs.
    """
    counts = Counts(kind)
    np.empty(1 << 24, np.int8)  # once freed, glibc keeps smaller arrays' memory at hand for reuse
    for block in blocks:
        rows = block.rows
        if not len(rows.positive):
            continue
        divisions = {name: _division(block.names[name]) for name in kind.columns}
        counts.add(rows, divisions)
        if repeats is not None:
            repeats.add(rows.positive, rows.baseline, rows.candidate)
        if runs is not None:
            runs.add(block)
        if store is not None:
            put_aside(store, block, counts.codes(divisions))
    return counts


def compare_counts(
    counts: Counts, margin: float, verified: Optional[Verified] = None
) -> Comparison:
    """`parity.compare` of counted rows, with days and slices as they were counted."""
    check_margin(margin)
    comparison = compare_summary(counts.whole, margin, verified=verified)
    return _with_parts(comparison, counts, _estimates_within(counts), None)


def compare_blocks(
    blocks: Iterable[Block],
    kind: Kind,
    margin: float,
    grouped: bool = False,
    worst: int = 0,
    verified: Optional[Verified] = None,
    sides: Optional[Sides] = None,
) -> Comparison:
    """`parity.compare` of blocks of rows, or `parity.compare_runs`.

    Args:
        grouped: whether the rows have groups that vary together.
        worst: how many of the rows that pull the difference hardest to list.
        verified: the record that stands for the rows that rare faults take.
        sides: how many training runs each side has, where one has several.
    """
    check_margin(margin)
    repeats = RepeatCounter()
    if grouped or worst or sides:
        runs = None if sides is None else RunCounts(kind, sides)
        comparison = _compare_stored(blocks, kind, margin, grouped, worst, verified, repeats, runs)
    else:
        comparison = compare_counts(count(blocks, kind, repeats=repeats), margin, verified)
    if grouped:  # copies within a group vary together, which the error by groups covers
        return comparison
    told = doubts.of_repeats(repeats.found(), comparison.rows)
    return dataclasses.replace(comparison, warnings=(*comparison.warnings, *told))


def _compare_stored(
    blocks: Iterable[Block],
    kind: Kind,
    margin: float,
    grouped: bool,
    worst: int,
    verified: Optional[Verified],
    repeats: RepeatCounter,
    runs: Optional[RunCounts],
) -> Comparison:
    """`compare_blocks` of rows that are read twice."""
    with Store() as store:
        counts = count(blocks, kind, store, repeats, runs)
        whole, within = Estimate(checked(counts.whole)), _estimates_within(counts)
        groups = Groups(whole, within, kind.day) if grouped else None
        hardest = Worst(whole, worst)
        mean_ranks = None if runs is None else runs.found_by(whole, grouped)
        for stored in read_back(store, kind.columns, kind.logits):
            if groups is not None:
                groups.add(stored)
            hardest.add(stored)
            if mean_ranks is not None:
                mean_ranks.add(stored)
    by_group = None if groups is None else groups.whole()
    comparison = compare_summary(counts.whole, margin, by_group, whole, verified)
    comparison = dataclasses.replace(comparison, worst=hardest.hardest())
    if runs is not None and mean_ranks is not None:
        found, notes = mean_ranks.found(), notes_on_bound(mean_ranks.bound, margin)
        warnings = doubts.of_runs(runs.shared)
        comparison = concluded_runs(comparison, found, warnings, verified, notes)
    return _with_parts(comparison, counts, within, groups)


def _estimates_within(counts: Counts) -> Within:
    """An estimate for each value of each dividing column; None without two rows of each class."""
    return {
        name: {
            value: Estimate(summary) if summary.rarer >= 2 else None
            for value, summary in of_values.items()
        }
        for name, of_values in counts.within.items()
    }


def _with_parts(
    comparison: Comparison, counts: Counts, within: Within, groups: Optional[Groups]
) -> Comparison:
    """The comparison with its days and slices; by group where the rows have groups."""
    margin, kind = comparison.margin, counts.kind
    slices = tuple(
        (name, with_q(_parts(counts, name, within, margin, groups))) for name in kind.slices
    )
    days = None
    if kind.day is not None:
        parts = _parts(counts, kind.day, within, margin, groups)
        days = _days(parts, [e for e in within[kind.day].values() if e], margin, groups)
    return dataclasses.replace(comparison, days=days, slices=slices)


def _parts(
    counts: Counts, name: str, within: Within, margin: float, groups: Optional[Groups]
) -> List[Part]:
    """A part per value of a dividing column, sorted by value."""
    of_values = counts.within[name]
    texts = any(isinstance(value, str) for value in of_values)
    parts = []
    for value in sorted(of_values, key=str if texts else None):  # numbers and text have no order
        summary, estimate = of_values[value], within[name][value]
        part = Part(str(value), summary.rows, summary.positives)
        if estimate is not None:
            if groups is None:
                evidence = estimate.evidence(estimate.spread())
            else:
                evidence = groups.part(name, value, estimate)
            part = part.compared(estimate.aucs, evidence, margin)
        parts.append(part)
    return parts


def _days(
    parts: List[Part], estimates: List[Estimate], margin: float, groups: Optional[Groups]
) -> Days:
    """The days, with an upper value of the mean's error; the mean of their bounds is its bound."""
    error, observations, bound = 0.0, 0.0, 0.0
    if estimates:
        bound = float(np.mean([estimate.bound for estimate in estimates]))
        error, observations = _error_of_mean(parts, estimates, groups)
    return days_of(parts, error, observations, margin, bound)


def _error_of_mean(
    parts: List[Part], estimates: List[Estimate], groups: Optional[Groups]
) -> Tuple[float, float]:
    if groups is not None:
        return groups.mean_day()
    errors = [part.standard_error for part in parts if part.standard_error is not None]
    return error_of_alike(errors, min(min(e.observations) for e in estimates))


def _division(names: pa.ChunkedArray) -> Division:
    """Rows divided by a column's values, which are such that JSON can hold them."""
    encoded = names.combine_chunks().dictionary_encode()
    return Division(
        [
            value if isinstance(value, (int, float)) and value == value else str(value)  # not nan
            for value in encoded.dictionary.to_pylist()
        ],
        encoded.indices.to_numpy(),
    )
