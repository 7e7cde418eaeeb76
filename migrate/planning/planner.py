"""Decides the target of each tensor of a checkpoint, one after the other."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.evidence import find_evidence
from migrate.graph.find import meta_path
from migrate.hash_tables.tensors import tensors_of
from migrate.open import open_hash_tables
from migrate.planning.choosing import choose_hash_tables, choose_variables, drop_tensors
from migrate.planning.entries import Entries
from migrate.planning.options import Options
from migrate.planning.plan import Plan
from migrate.planning.static import Marks, mark_static


def plan(
    checkpoint: Checkpoint,
    meta: Optional[str] = None,
    tables: Optional[str] = None,
    partition_strategy: Optional[str] = None,
    module: str = "ebc",
    rename: Sequence[Tuple[str, str]] = (),
    cast: Optional[str] = None,
    drop: Optional[str] = None,
    static: Marks = (),
    ids: str = "rows",
    duplicates: str = "error",
) -> Plan:
    """Decides the target of each tensor of `checkpoint`.

    Args:
        checkpoint: from `migrate.open_checkpoint`.
        meta: path of the MetaGraph; without it `migrate.graph.find` looks for one.
        tables: regular expression (re.search) for the variables that are tables; without it they
            are those that the graph looks up; "" where there are none.
        partition_strategy: "div" or "mod", for partitioned tables whose strategy the graph lacks.
        module: path of the EmbeddingBagCollection in the model.
        rename: (regular expression, replacement) pairs; each is applied in turn to the names of
            tables and dense variables (re.sub).
        cast: "float16" or "bfloat16": data type of the tables in the target.
        drop: regular expression (re.search) for tensors to leave out.
        static: (regular expression, "fp16", "int8" or "float32") pairs (re.search): tables that are
            no longer trained, and their type in the target; the first match counts.
        ids: how the target finds the row of a hash table's id, one of
            `migrate.manifest.id_modes.MODES`.
        duplicates: "error" or "newest": the treatment of an id that two partitions of a hash table
            hold.

    Returns:
        A `Plan`.

    Raises:
        UsageError: the caller has to say more.
        BadInput: graph and checkpoint do not fit each other, or contradict the caller.

    Examples:
        >>> plan = migrate.plan(migrate.open_checkpoint("model.ckpt-40000"), rename=[("s$", "")])
        >>> [(table.name, table.rows, table.dim) for table in plan.tables]
        [('citie', 50, 4), ('product', 100, 4)]
    """
    options = Options(
        strategy=partition_strategy,
        rename=rename,
        cast=cast,
        drop=drop,
        ids=ids,
        duplicates=duplicates,
    )
    result = Plan(source=checkpoint.prefix, module=module)
    _decide(checkpoint, meta, tables, options, result)
    options.check_renamed()
    mark_static(result, static)
    _note_dims(result)
    return result


def _decide(
    checkpoint: Checkpoint,
    meta: Optional[str],
    tables: Optional[str],
    options: Options,
    result: Plan,
) -> None:
    sources = open_hash_tables(checkpoint, meta)
    # A MetaGraph is needed for variables only: it saves hash tables in another way.
    of_hash_tables = {name for table in sources.values() for name in tensors_of(table)}
    evidence = None
    if set(checkpoint) - of_hash_tables:
        evidence = find_evidence(checkpoint, meta, options.drops)
    result.meta = evidence.graph.path if evidence else meta_path(checkpoint, meta)
    result.newer = checkpoint.newer.prefix if checkpoint.newer is not None else None
    entries = Entries(checkpoint, evidence, options, result)
    chosen_sources = choose_hash_tables(sources, options, result)
    by_ids = [entries.hash_table(source) for source in chosen_sources.values()]
    taken = of_hash_tables | drop_tensors(checkpoint, of_hash_tables, options, result)
    taken |= entries.slot_tensors
    left = {name: info for name, info in checkpoint.items() if name not in taken}
    chosen = choose_variables(left, tables, evidence, result)
    for name, info in left.items():
        if name in chosen:
            result.tables.append(entries.table(name, info))
        elif name in entries.counters:
            result.scalars.append(name)
        else:
            result.dense.append(entries.dense(name, info, chosen))
    result.tables += by_ids


def _note_dims(result: Plan) -> None:
    odd = [f"{table.name} ({table.dim})" for table in result.tables if table.dim % 4]
    if odd:
        result.notes.append(
            "FBGEMM's fused kernels want a dim that is a multiple of 4; not so: " + ", ".join(odd)
        )
