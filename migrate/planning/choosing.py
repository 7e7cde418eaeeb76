"""Chooses which tensors are dropped, and which variables and hash tables become tables."""

from __future__ import annotations

from typing import Dict, Mapping, Optional, Set

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.evidence import Evidence
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.tensors import tensors_of
from migrate.planning.options import Options, search
from migrate.planning.plan import Plan
from semisync.common.errors import UsageError
from semisync.encoding.dtypes import BY_NAME

NO_TABLES = ""  # the pattern for none: as a regular expression it would match everything


def drop_tensors(
    checkpoint: Checkpoint, taken: Set[str], options: Options, result: Plan
) -> Set[str]:
    """Drops the tensors that `options` drop and those that torch has no type for.

    Args:
        taken: tensors that are decided on already.

    Returns:
        Their names.
    """
    for name, info in checkpoint.items():
        if name in taken:
            continue
        if options.drops(name):
            result.dropped[name] = options.reason
        elif BY_NAME[info.dtype].torch is None:
            result.dropped[name] = f"torch has no tensors of type {info.dtype}"
    if options.drop is not None and options.reason not in result.dropped.values():
        raise UsageError(f"--drop {options.drop!r} names none of the {len(checkpoint)} tensors")
    return set(result.dropped)


def choose_hash_tables(
    sources: Mapping[str, HashTable], options: Options, result: Plan
) -> Dict[str, HashTable]:
    """The hash tables that become embedding tables; the others are dropped with a reason."""
    chosen = {}
    for name, table in sources.items():
        tensors = tensors_of(table)
        reason = _why_no_table(table)
        if any(map(options.drops, (name, *tensors))):
            reason = options.reason
        if reason is None:
            chosen[name] = table
        else:
            # Tables in files of their own have no tensors: the table's name stands for them.
            result.dropped.update(dict.fromkeys(sorted(tensors) or [name], reason))
    return chosen


def _why_no_table(table: HashTable) -> Optional[str]:
    """Why a hash table is not converted, or None."""
    if table.key_dtype not in ("int64", "int32"):
        return f"a hash table by {table.key_dtype} keys: TorchRec's ids are integers"
    if table.value_shape == (0,):
        return "an empty hash table, whose files do not tell the size of a row"
    if len(table.value_shape) != 1 or not BY_NAME[table.dtype].is_floating:
        return (
            f"a hash table of {table.dtype} {list(table.value_shape)}: only rows of floats become "
            "an embedding table"
        )
    return None


def choose_variables(
    left: Mapping[str, TensorInfo],
    pattern: Optional[str],
    evidence: Optional[Evidence],
    result: Plan,
) -> Set[str]:
    """The tables among the variables `left`: by `pattern`, or else by the graph's look-ups."""
    if pattern == NO_TABLES:
        return set()
    if pattern is not None:
        return _matching(left, pattern)
    if evidence is not None:
        return _looked_up(left, evidence, result)
    if any(map(_may_be_table, left.values())):
        raise UsageError(
            f"{result.source} has no MetaGraph beside it, so nothing tells which variables are "
            "embedding tables; give --meta FILE, --tables REGEX, or --no-tables if there are none"
        )
    return set()


def _looked_up(left: Mapping[str, TensorInfo], evidence: Evidence, result: Plan) -> Set[str]:
    """The tables among `left` that the graph looks up; notes name what it may not show."""
    unseen = [name for name in evidence.hidden if name in left and _may_be_table(left[name])]
    if unseen:
        result.notes.append(
            f"functions of the graph use {', '.join(unseen)}; look-ups inside functions "
            "are not seen: name the tables with --tables REGEX if these are some"
        )
    remade = [
        name
        for name in evidence.remade
        if name in left and name not in evidence.lookups and _may_be_table(left[name])
    ]
    if remade:
        result.notes.append(
            f"the graph looks up other matrices that it makes of {', '.join(remade)}, such as one "
            "with a row of zeros, so that these become dense variables: where an id is the number "
            "of a row anyway, name the tables with --tables REGEX"
        )
    known = {where.name for where in evidence.saved.values()}
    unknown = [name for name, info in left.items() if name not in known and _may_be_table(info)]
    if unknown:
        result.notes.append(
            f"the MetaGraph does not know {', '.join(unknown)}, which become dense variables: name "
            "the tables with --tables REGEX if these are some"
        )
    chosen = set()
    for name in evidence.lookups:
        if name not in left:
            continue
        if not _may_be_table(left[name]):
            result.notes.append(
                f"{name} is looked up, but is {left[name].dtype} {list(left[name].shape)} and "
                "no [rows, dim] of floats: it stays among the dense variables"
            )
        else:
            chosen.add(name)
    return chosen


def _may_be_table(info: TensorInfo) -> bool:
    return len(info.shape) == 2 and BY_NAME[info.dtype].is_floating


def _matching(left: Mapping[str, TensorInfo], pattern: str) -> Set[str]:
    """The variables that `pattern` names; each must have a table's shape."""
    named = {name for name in left if search(pattern, name, "--tables")}
    if not named:
        raise UsageError(f"--tables {pattern!r} names none of the {len(left)} variables")
    for name in sorted(named):
        if not _may_be_table(left[name]):
            raise UsageError(
                f"--tables {pattern!r} names {name!r}, {left[name].dtype} "
                f"{list(left[name].shape)}; a table is [rows, dim] of floats"
            )
    return named
