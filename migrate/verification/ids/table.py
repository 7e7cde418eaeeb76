"""One hash table of a converted directory, compared with the source's."""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable
from migrate.manifest.manifest import Manifest, TableSummary
from migrate.verification.ids.one_by_one import compare_one_by_one
from migrate.verification.ids.sides import BothSides, Open
from migrate.verification.ids.standing import FreeRows, Standing
from migrate.verification.ids.sums import CLASSES, ClassSums, classes_of, in_groups

Differs = Callable[[str], None]


class Compared(NamedTuple):
    """rows of so many tensors: compared; differing: ids that differ."""

    rows: int
    tensors: int
    differing: int


def compare_table(
    source: HashTable,
    table: TableSummary,
    manifest: Manifest,
    open_: Open,
    differs: Differs,
    sample: Optional[int] = None,
) -> Compared:
    """Compares one table of the manifest that has ids.

    Args:
        open_: a reader for a tensor of the manifest.
        differs: gets each difference as a sentence.
        sample: compare that many ids of the target alone, drawn at random.

    Raises:
        BadInput: the manifest does not tell which tensors the table is made of, or where either
            side cannot be read.
    """
    assert table.ids is not None
    sides = BothSides(source, table, table.ids, manifest, open_)
    tensors = len(sides.columns)
    if sample is not None:
        wanted = sides.draw(sample)
        differing = compare_one_by_one(sides, differs, lambda ids: numpy.isin(ids, wanted))
        return Compared(len(wanted) * tensors, tensors, differing)
    sums = [ClassSums(column) for column in sides.columns]
    count, differing = _take_in_target(sides, sums, differs)
    for of_column in sums:
        for ids, values in sides.source(of_column.column):
            of_column.add(ids, values, -1)
    differing += _settle(sides, sums, count, differs)
    return Compared(int(count.sum()) * tensors, tensors, differing)


def _take_in_target(
    sides: BothSides, sums: List[ClassSums], differs: Differs
) -> Tuple[numpy.ndarray, int]:
    """Adds the target to `sums`, and checks its ids and free rows.

    Returns:
        How many ids each class has, int64 [CLASSES], and how many free rows differ.
    """
    standing, free = Standing(sides.table, differs), FreeRows(sides, differs)
    count = numpy.zeros(CLASSES, numpy.int64)
    for first, ids, there, rows in sides.target():
        standing.check(first, ids, there)
        free.check(first, there, rows)
        count += numpy.bincount(classes_of(ids[there]), minlength=CLASSES)
        for of_column, values in zip(sums, rows):
            of_column.add(ids[there], values[there], +1)
    standing.end()
    free.check_behind()
    return count, free.differing


def _settle(sides: BothSides, sums: List[ClassSums], count: numpy.ndarray, differs: Differs) -> int:
    """Compares the ids of the classes whose sums differ; returns how many ids do. One group of
    classes with wrong ids names enough of them: it is the last."""
    wrong = numpy.any([of_column.sums != 0 for of_column in sums], axis=0)
    for chosen in in_groups(wrong, count):
        differing = compare_one_by_one(sides, differs, chosen)
        if differing:
            return differing
    return 0
