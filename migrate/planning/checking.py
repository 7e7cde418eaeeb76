"""Does a plan fit a checkpoint? Checked before anything is written, since plans may be edited.

1. Names: each can be written, is given once, and no tensor of the checkpoint is written twice.
2. Choices: each is known, and they go together.
3. The source: it has every tensor that the plan names, with that shape, type and partitions.
4. The MetaGraph does not say otherwise (`migrate.planning.against_graph`).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Dict, Mapping, Optional, Sequence

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import partitions, row_blocks
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.hash_tables.hash_table import HashTable
from migrate.manifest.id_modes import DUPLICATES, MODES
from migrate.manifest.transforms import filler
from migrate.optimizers.registry import DYNAMICEMB, ROW_WISE
from migrate.planning.against_graph import check_against_graph
from migrate.planning.plan import CASTS, POOLINGS, STRATEGIES, IdMapping, Plan, Table
from migrate.planning.static import check_static
from semisync.common.errors import BadInput
from semisync.encoding.dtypes import BY_NAME, number_type, widened


def check_plan(plan: Plan, checkpoint: Checkpoint, sources: Mapping[str, HashTable]) -> None:
    """Checks a plan against the checkpoint and its hash tables.

    Raises:
        BadInput: a tensor is not there as planned; the message names the first.
    """
    _check_text(plan)
    if not all(name and "/" not in name for name in plan.module.split(".")):
        raise BadInput(f"the plan's module is {plan.module!r}; expected names joined by dots")
    if not (plan.tables or plan.dense or plan.scalars):
        raise BadInput(f"the plan writes nothing of {checkpoint.prefix}")
    names: Dict[str, str] = {}
    for table in plan.tables:
        _check_name(table, names)
        _check_choices(table)
        if table.ids is None:
            _check_variable(table, checkpoint)
        else:
            _check_ids(table, table.ids, sources, checkpoint.prefix)
    for dense in plan.dense:
        if dense.name == "":
            raise BadInput(f"the plan gives {dense.variable!r} an empty name")
        strategy = dense.partition_strategy
        _check(checkpoint, dense.variable, tuple(dense.shape), dense.dtype, strategy)
        for source in dense.slots.values():
            _check(checkpoint, source, tuple(dense.shape), None, strategy)
    for name in plan.scalars:
        _check(checkpoint, name, (), None, None)
    _check_written_once(plan)
    check_against_graph(plan, checkpoint)


def _check_text(plan: Plan) -> None:
    """Checks that every name can be written: paths and options may be bytes that are not UTF-8."""
    try:
        json.dumps(asdict(plan), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        near = error.object[max(error.start - 20, 0) : error.end]
        raise BadInput(f"the plan has a name or path that is not UTF-8: ...{near!r}") from error


def _check_name(table: Table, names: Dict[str, str]) -> None:
    if not table.name or "." in table.name:
        raise BadInput(f"the plan names a table {table.name!r}; a table's name has no dot")
    if names.setdefault(table.name, table.variable) != table.variable:
        raise BadInput(
            f"variables {names[table.name]!r} and {table.variable!r} would both become table "
            f"{table.name!r}; rename one with --rename REGEX=NAME"
        )


def _check_choices(table: Table) -> None:
    where = f"table {table.name!r}"
    if table.dtype not in BY_NAME:
        raise BadInput(f"{where}: dtype {table.dtype!r}, which is no type of TensorFlow's")
    if table.cast not in (None, *CASTS):
        raise BadInput(f"{where}: cast {table.cast!r}, expected one of {', '.join(CASTS)}")
    if table.cast and not BY_NAME[table.dtype].is_floating:
        raise BadInput(f"{where} is {table.dtype}; only floating types can be cast")
    if table.pooling not in (None, *POOLINGS):
        raise BadInput(f"{where}: pooling {table.pooling!r}, expected {' or '.join(POOLINGS)}")
    if table.row_wise and (table.optimizer not in ROW_WISE or table.ids is not None):
        what = table.optimizer if table.ids is None else f"{table.optimizer} of a hash table"
        raise BadInput(f"{where}: row_wise is for {', '.join(ROW_WISE)}, its optimizer is {what}")
    if table.weighted and table.pooling == "none":
        raise BadInput(f"{where} has weights, but pooling none; weights are for pooled vectors")
    check_static(table)


def _check_variable(table: Table, checkpoint: Checkpoint) -> None:
    """Checks a table whose ids are row numbers, and its slots."""
    if table.rows is None:
        raise BadInput(f"table {table.name!r}: the plan does not say how many rows it has")
    shape, strategy = (table.rows, table.dim), table.partition_strategy
    info = _check(checkpoint, table.variable, shape, table.dtype, strategy)
    _check_partitions(table, table.variable, info)
    for source in table.slots.values():
        _check_partitions(table, source, _check(checkpoint, source, shape, None, strategy))


def _check(
    checkpoint: Checkpoint,
    name: str,
    shape: Sequence[int],
    dtype: Optional[str],
    strategy: Optional[str],
) -> TensorInfo:
    info = checkpoint.get(name)
    if info is None:
        raise BadInput(f"the plan names {name!r}, which {checkpoint.prefix} does not hold")
    planned = f"{dtype or info.dtype} {list(shape)}"
    stored = f"{info.dtype} {list(info.shape)}"
    if stored != planned:
        raise BadInput(f"the plan has {name!r} as {planned}, {checkpoint.prefix} as {stored}")
    if BY_NAME[info.dtype].torch is None:
        raise BadInput(f"{name!r}: torch has no tensors of type {info.dtype}; drop it in the plan")
    if strategy not in (None, *STRATEGIES):
        raise BadInput(f"{name!r}: partition strategy {strategy!r}, expected 'div' or 'mod'")
    if strategy is not None:
        # For its error: the partitions must be those that TensorFlow makes.
        row_blocks(info, name)
    return info


def _check_partitions(table: Table, source: str, info: TensorInfo) -> None:
    count = partitions(info)
    if count != table.partitions:
        raise BadInput(f"the plan has {source!r} in {table.partitions} partitions, found {count}")
    if count > 1 and table.partition_strategy is None:
        raise BadInput(
            f"table {table.name!r} has {count} partitions, but the plan does not say how ids were "
            "dealt to them; set its partition_strategy to div or mod"
        )


def _check_written_once(plan: Plan) -> None:
    names = Counter([dense.name or dense.variable for dense in plan.dense] + plan.scalars)
    for name, count in names.items():
        if count > 1:
            raise BadInput(f"two dense variables would be named {name!r}; rename one in a plan")
    sources = [*plan.scalars, *(table.variable for table in plan.tables)]
    sources += (dense.variable for dense in plan.dense)
    for slots in [table.slots for table in plan.tables if table.ids is None]:
        sources += slots.values()  # a hash table's are not tensors of the checkpoint
    for slots in [dense.slots for dense in plan.dense]:
        sources += slots.values()
    for name, count in Counter(sources).items():
        if count > 1:
            raise BadInput(f"the plan writes {name!r} twice; leave it in one place")


def _check_ids(table: Table, ids: IdMapping, sources: Mapping[str, HashTable], where: str) -> None:
    """Raises BadInput if the hash tables `sources` of the checkpoint `where` contradict `table`."""
    name = f"hash table {table.variable!r}"
    source = sources.get(table.variable)
    if source is None:
        raise BadInput(f"the plan names the {name}, which {where} does not hold")
    planned = f"{ids.kind}, {ids.stored} rows, {table.dtype} {[table.dim]}"
    stored = f"{source.kind}, {source.stored} rows, {source.dtype} {list(source.value_shape)}"
    if planned != stored:
        raise BadInput(f"the plan has {name} as {planned}, {where} as {stored}")
    if source.key_dtype not in ("int64", "int32") or not BY_NAME[source.dtype].is_floating:
        raise BadInput(f"{name} has {source.key_dtype} ids and rows of {source.dtype}; drop it")
    for key, value, known in (
        ("ids", ids.mode, tuple(MODES)),
        ("duplicates", ids.duplicates, DUPLICATES),
    ):
        if value not in known:
            raise BadInput(f"{name}: {key} {value!r}, expected one of {', '.join(known)}")
    if ids.buckets < 1 or (table.rows is not None and table.rows < 1):
        raise BadInput(f"{name}: rows and buckets are at least 1")
    if ids.mode == "mpzch" and table.rows is not None and table.rows % ids.buckets:
        raise BadInput(f"{name}: its {table.rows} rows do not divide into {ids.buckets} buckets")
    for slot, of_source in table.slots.items():
        if of_source not in source.slots:
            raise BadInput(
                f"the plan names slot {of_source!r} of {name}, which {where} does not hold"
            )
        if slot not in ids.fill:
            raise BadInput(f"{name}: the plan's fill has no value for slot {slot!r}")
    if ids.mode == "dynamicemb":
        _check_dynamicemb(table, source, name)
    _check_fill(table, ids, source, name)


def _check_dynamicemb(table: Table, source: HashTable, name: str) -> None:
    """Checks the limits of its files: float32, and the state of some optimizers."""
    if table.cast is not None or table.rows is not None or table.static not in (None, "float32"):
        raise BadInput(f"{name}: dynamicemb's files are float32 and have no free rows")
    if table.placement is not None:
        raise BadInput(f"{name}: TorchRec's planner does not place dynamicemb's tables")
    if table.written_slots and table.optimizer not in DYNAMICEMB:
        raise BadInput(
            f"{name}: dynamicemb keeps the state of {', '.join(DYNAMICEMB)} alone, these slots "
            f"are of {table.optimizer}; leave them out of the plan"
        )
    if any(source.slots[slot].dtype != "float32" for slot in table.written_slots.values()):
        raise BadInput(f"{name}: dynamicemb's optimizer state is float32; leave the slots out")


def _check_fill(table: Table, ids: IdMapping, source: HashTable, name: str) -> None:
    """Checks that the slots can hold their fills."""
    for slot, of_source in table.written_slots.items():
        dtype = source.slots[of_source].dtype
        with numpy.errstate(all="ignore"):  # a misfit is reported below
            written = widened(filler(ids.fill[slot], number_type(dtype)))
        if not numpy.isfinite(written):
            raise BadInput(
                f"{name}: fill has {ids.fill[slot]} for slot {slot!r}; "
                f"expected a number that {dtype} holds"
            )
