"""Chosen ids of source and target, compared one by one."""

from __future__ import annotations

from typing import Callable, List, Optional, Set, Tuple

import numpy

from migrate.verification.ids.columns import Column
from migrate.verification.ids.sides import BothSides, Chosen, SourceRows


def compare_one_by_one(sides: BothSides, differs: Callable[[str], None], chosen: Chosen) -> int:
    """Compares the chosen ids; returns how many differ, and names the first of each column."""
    ids, of_columns = _of_target(sides, chosen)
    winners: Optional[SourceRows] = None
    contested = numpy.empty(0, numpy.int64)  # ids that several partitions of the table have
    wrong: Set[int] = set()
    for column, rows in zip(sides.columns, of_columns):
        source = sides.of_source(column, chosen)
        if winners is None:  # the table's own rows come first
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
    blocks = []
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
    """Which rows count: for an id that is there twice or `contested`, the winning partition's."""
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
