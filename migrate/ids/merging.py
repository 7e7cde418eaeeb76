"""From sorted runs to one order: which row of the runs each row of the target is.

1. Table and slots are read in blocks: the ids whose places lie between two bounds, from all runs,
   are put in the order of their places.
2. An id that two partitions hold is refused, or its newest version wins (`_without_duplicates`).
3. A slot's row is the one of the same id, and where table or slot have the id in several
   partitions, in the same one as the table's. An id without one gets the optimizer's initial value;
   a slot's row without an id is left out. Both are counted.
4. Each id is given its row, while a thread brings the next block (`migrate.ids.placing`). The moves
   are written into maps, one for the table and one per slot (`migrate.stream.columns`), and
   the ids into a file in the order of the target.

Memory: four blocks of BLOCK_ROWS ids, or more where one run's marks are far apart.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import Dict, Generator, Iterator, List, Optional, Sequence, Tuple, Union

import numpy

from migrate.ids.placing import ByHash, InTurn, Map, Target
from migrate.ids.runs import STEP, Batch, Reader, Runs
from migrate.stream.columns import FREE, describe
from migrate.stream.sorting import argsort
from semisync.common.errors import BadInput
from semisync.storage.threads import one_ahead

BLOCK_ROWS = 1 << 19
_BLOCKS = 16  # at least: memory that is touched for the first time is expensive


@dataclass
class Merged:
    """The result for a table.

    Attributes:
        rows: of the target.
        ids: how many of them have one.
        duplicates: rows that lost against a newer one of the same id.
        max_probe: longest search for an id, in rows; 1 where no hash decides.
        without: ids that lack a slot, by slot.
        ownerless: rows of a slot that lack an id.
    """

    rows: int = 0
    ids: int = 0
    duplicates: int = 0
    max_probe: int = 1
    without: Dict[str, int] = field(default_factory=dict)
    ownerless: Dict[str, int] = field(default_factory=dict)


def merge(
    table: Runs,
    slots: Dict[str, Runs],
    target: Target,
    newest: bool,
    where: str,
    partitions: Sequence[str],
) -> Merged:
    """Writes TABLE-map.rows, SLOT-map.rows and TABLE-map.ids, and returns its result.

    Args:
        newest: whether the newest version of an id wins; otherwise an id that comes twice is
            BadInput.
        where: names the table in messages.
        partitions: names of the table's partitions, for messages.
    """
    merged = Merged(without=dict.fromkeys(slots, 0), ownerless=dict.fromkeys(slots, 0))
    everyone = [table, *slots.values()]
    with contextlib.ExitStack() as stack:

        def new_map(runs: Runs, name: str, free: int) -> Map:
            path = os.path.join(runs.directory, f"{runs.stem}-map.{name}")
            return Map(stack.enter_context(open(path, "w+b")), free)

        maps = [new_map(runs, "rows", FREE) for runs in everyone]
        maps.append(new_map(table, "ids", target.reserved[0]))
        placing: Union[ByHash, InTurn]
        placing = ByHash(target, maps, where) if target.buckets else InTurn(target, maps)
        blocks = _blocks(table, slots, merged, newest, where, partitions)
        # Closed here, the thread first: else an error would keep its files and thread alive.
        stack.enter_context(contextlib.closing(blocks))
        for block, of_slots in stack.enter_context(contextlib.closing(one_ahead(blocks))):
            _refuse_reserved(block.ids, target, where)
            placing.put(block.places, [block.rows, *of_slots, block.ids])
        merged.rows = placing.end()
        merged.max_probe = placing.max_probe
    for runs in everyone:
        columns = ("rows", "ids") if runs is table else ("rows",)
        describe(runs.directory, runs.stem + "-map", {name: ("int64", []) for name in columns})
    return merged


def _blocks(
    table: Runs,
    slots: Dict[str, Runs],
    merged: Merged,
    newest: bool,
    where: str,
    partitions: Sequence[str],
) -> Generator[Tuple[Batch, List[numpy.ndarray]], None, None]:
    """Yields the ids in the order of their places, and each slot's rows [n]; counts in `merged`."""
    everyone = [table, *slots.values()]
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(contextlib.closing(Reader(runs))) for runs in everyone]
        read = ([reader.until(bound) for reader in readers] for bound in _bounds(everyone))
        for unordered in stack.enter_context(contextlib.closing(one_ahead(read))):
            batches = [_in_order(batch) for batch in unordered]
            own, contested = _without_duplicates(batches[0], table, newest, where, partitions)
            merged.ids += len(own.ids)
            merged.duplicates += len(batches[0].ids) - len(own.ids)
            of_slots = []
            # A slot table has an order and ids of its own: it is joined by id, never by row.
            for (name, runs), slot in zip(slots.items(), batches[1:]):
                of_slot = f"{where}: slot {name!r}"
                rows, ownerless = _joined(own, contested, table, slot, runs, of_slot)
                merged.without[name] += int((rows == FREE).sum())
                merged.ownerless[name] += ownerless
                of_slots.append(rows)
            yield own, of_slots


def _bounds(everyone: Sequence[Runs]) -> Iterator[Optional[int]]:
    """Places that divide all rows into blocks; None is the end."""
    marks = [run.marks for of_table in everyone for run in of_table.runs]
    if marks:
        # Every STEP-th place of a run is marked: bounds at each so many marks make even blocks.
        every = numpy.sort(numpy.concatenate(marks))
        step = max(min(BLOCK_ROWS // STEP, len(every) // _BLOCKS), 1)
        yield from numpy.unique(every[step::step]).tolist()
    yield None


def _in_order(batch: Batch) -> Batch:
    """`batch` by places, and by ids where these are equal."""
    batch = batch.only(argsort(batch.places))
    # Two ids of one place: two stable sorts order by place, then by id.
    if (batch.places[1:] == batch.places[:-1]).any():
        batch = batch.only(argsort(batch.ids))
        batch = batch.only(argsort(batch.places))
    return batch


def _refuse_reserved(ids: numpy.ndarray, target: Target, where: str) -> None:
    first, last = target.reserved
    wrong = ids[(ids >= first) & (ids <= last)]
    if len(wrong):
        raise BadInput(
            f"{where} has the id {wrong[0]}, by which {target.owner} marks rows that are free or "
            "in use; convert it with --ids rows, or save it without this id"
        )


def _without_duplicates(
    batch: Batch, table: Runs, newest: bool, where: str, partitions: Sequence[str]
) -> Tuple[Batch, numpy.ndarray]:
    """`batch`, in order, with one row for each id; and a mask of those that had several."""
    again = batch.ids[1:] == batch.ids[:-1]
    if not again.any():
        return batch, numpy.zeros(len(batch.ids), bool)
    at = int(again.argmax())
    both = _in_both(table, batch.rows[at : at + 2], partitions)
    twice = f"{where} has id {batch.ids[at]} twice, {both}"
    if not newest:
        raise BadInput(
            f"{twice}; `semisync convert --duplicates newest` takes the row that was updated last, "
            "where the source has versions"
        )
    if "versions" not in table.columns:
        raise BadInput(f"{twice}, and the source has no versions that tell which is newer")
    of_several = numpy.zeros(len(batch.ids), bool)
    of_several[1:] |= again
    of_several[:-1] |= again
    (places,) = numpy.nonzero(of_several)
    with contextlib.closing(table.column("versions")) as column:
        versions = column.take(batch.rows[places])
    # The last key is the primary one: by id, and of one id the newest version last.
    order = numpy.lexsort((versions, batch.ids[places]))
    places, versions = places[order], versions[order]
    last = numpy.append(batch.ids[places][1:] != batch.ids[places][:-1], True)
    tied = ~last[:-1] & last[1:] & (versions[1:] == versions[:-1])
    if tied.any():
        at = int(tied.argmax())
        both = _in_both(table, batch.rows[places[at : at + 2]], partitions)
        raise BadInput(
            f"{where} has id {batch.ids[places[at]]} twice with version {versions[at]}, {both}: "
            "neither is newer"
        )
    kept = ~of_several
    kept[places[last]] = True
    return batch.only(kept), of_several[kept]


def _in_both(table: Runs, rows: numpy.ndarray, partitions: Sequence[str]) -> str:
    first, second = (partitions[part] for part in table.parts(rows))
    return f"in {first} and in {second}"


def _joined(
    own: Batch, contested: numpy.ndarray, table: Runs, slot: Batch, runs: Runs, where: str
) -> Tuple[numpy.ndarray, int]:
    """The slot's row for each id of `own`, FREE where there is none; and its rows without an id.

    Both are in order.

    Args:
        table, runs: the table and its sorted runs.
        contested: which ids of `own` several partitions of the table had.
    """
    # The usual case: every id has its slot, and both tables were sorted alike.
    if numpy.array_equal(own.ids, slot.ids) and not contested.any():
        return slot.rows, 0
    of_slot = numpy.full(len(own.ids), FREE)
    if not len(own.ids):
        return of_slot, len(slot.ids)
    by_id = argsort(own.ids)
    at = numpy.searchsorted(own.ids, slot.ids, sorter=by_id)
    at = by_id[at.clip(max=len(own.ids) - 1)]
    known = own.ids[at] == slot.ids
    ownerless = int((~known).sum())
    # Of an id that several partitions hold, in the table or in the slot: only the slot's row in the
    # partition of the table's row counts.
    again = numpy.zeros(len(slot.ids), bool)
    again[1:] |= slot.ids[1:] == slot.ids[:-1]
    again[:-1] |= slot.ids[1:] == slot.ids[:-1]
    again |= contested[at]
    known &= ~again | (table.parts(own.rows[at]) == runs.parts(slot.rows))
    if len(numpy.unique(at[known])) != int(known.sum()):
        raise BadInput(f"{where} has an id twice in one partition; the source is damaged")
    of_slot[at[known]] = slot.rows[known]
    return of_slot, ownerless
