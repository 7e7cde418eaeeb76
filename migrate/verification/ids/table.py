"""One hash table of a converted directory, compared with the source's: by sums, or id by id."""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional, Set, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable
from migrate.manifest.manifest import Manifest, TableSummary
from migrate.verification.ids.sides import BothSides, Chosen, Column, Open, SourceRows
from migrate.verification.ids.standing import FreeRows, Standing
from migrate.verification.ids.sums import CLASSES, ClassSums, classes_of, in_groups

Differs = Callable[[str], None]


class Compared(NamedTuple):
    """The extent of a comparison.

    Attributes:
        rows: how many were compared, of all tensors together.
        tensors: how many were compared.
        differing: number of ids that differ.
    """

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
        BadInput: the manifest does not say which tensors the table is made of, or a side cannot
            be read.
    """
    assert table.ids is not None
    sides = BothSides(source, table, table.ids, manifest, open_)
    tensors = len(sides.columns)
    if sample is not None:
        wanted = sides.draw(sample)
        differing = _compare_one_by_one(sides, differs, lambda ids: numpy.isin(ids, wanted))
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
    """Compares the ids of the classes whose sums differ; returns how many ids do, as far as the
    first group of classes with any: it names enough of them."""
    wrong = numpy.any([of_column.sums != 0 for of_column in sums], axis=0)
    for chosen in in_groups(wrong, count):
        differing = _compare_one_by_one(sides, differs, chosen)
        if differing:
            return differing
    return 0


def _compare_one_by_one(sides: BothSides, differs: Callable[[str], None], chosen: Chosen) -> int:
    """Compares the chosen ids; returns how many differ, and names the first of each column."""
    ids, of_columns = _of_target(sides, chosen)
    winners: Optional[SourceRows] = None
    contested = numpy.empty(0, numpy.int64)  # ids that several partitions of the table have
    wrong: Set[int] = set()
    for column, rows in zip(sides.columns, of_columns):
        source = sides.of_source(column, chosen)
        if winners is None:  # the table's own rows come first
            # By id, and of one id the newest version last: the conversion kept that one.
            source = source.only(numpy.lexsort((source.versions, source.ids)))
            winners = source.only(_last_of(source.ids))
            contested = source.ids[1:][source.ids[1:] == source.ids[:-1]]
        kept = _kept(source, winners, contested)
        differing = _different(ids, rows, source.only(kept), column)
        if differing:
            differs(
                f"table {sides.table.name!r}: {len(differing)} ids have another {column.name} "
                f"than in {sides.ids.table!r}, or are on one side alone, the first is id "
                f"{min(differing)}"
            )
        wrong |= differing
    return len(wrong)


def _of_target(sides: BothSides, chosen: Chosen) -> Tuple[numpy.ndarray, List[numpy.ndarray]]:
    """The chosen ids [n], ascending, and their rows [n, bytes] of each column."""
    widths = [column.stop - column.start for column in sides.columns]
    # An empty table has no block.
    none = [numpy.empty((0, width), numpy.uint8) for width in widths]
    blocks = [[numpy.empty(0, numpy.int64), *none]]
    for _, ids, there, rows in sides.target():
        kept = there.copy()
        kept[there] = chosen(ids[there])
        blocks.append([ids[kept], *(column[kept] for column in rows)])
    ids, *of_columns = (numpy.concatenate(column) for column in zip(*blocks))
    order = numpy.argsort(ids, kind="stable")
    return ids[order], [rows[order] for rows in of_columns]


def _last_of(ids: numpy.ndarray) -> numpy.ndarray:
    """A mask of the last of equal neighbours."""
    return numpy.append(ids[1:] != ids[:-1], numpy.ones(min(len(ids), 1), bool))


def _kept(source: SourceRows, winners: SourceRows, contested: numpy.ndarray) -> numpy.ndarray:
    """A mask of the rows that count: of an id that comes twice or is `contested`, the winner's."""
    if not len(winners.ids):
        return numpy.zeros(len(source.ids), bool)
    at = numpy.searchsorted(winners.ids, source.ids).clip(max=len(winners.ids) - 1)
    _, first, times = numpy.unique(source.ids, return_inverse=True, return_counts=True)
    same_part = winners.parts[at] == source.parts
    once = (times[first] == 1) & ~numpy.isin(source.ids, contested)
    kept: numpy.ndarray = (winners.ids[at] == source.ids) & (same_part | once)
    return kept


def _different(
    ids: numpy.ndarray, rows: numpy.ndarray, source: SourceRows, column: Column
) -> Set[int]:
    """The ids whose rows differ; `ids` of the target are sorted, those of the source are not."""
    # An id that the target has twice is wrong, whatever its rows.
    wrong = set(ids[1:][ids[1:] == ids[:-1]].tolist())
    order = numpy.argsort(source.ids, kind="stable")
    of_source, expected = source.ids[order], source.rows[order]
    common, in_target, in_source = numpy.intersect1d(ids, of_source, return_indices=True)
    wrong.update(common[(rows[in_target] != expected[in_source]).any(axis=1)].tolist())
    wrong.update(of_source[~numpy.isin(of_source, common)].tolist())
    alone = ~numpy.isin(ids, common)
    if column.fill is not None:
        alone &= (rows != column.fill).any(axis=1)
    wrong.update(ids[alone].tolist())
    return wrong
