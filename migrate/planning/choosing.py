"""Which tensors of the checkpoint are dropped, and which variables are tables."""

from __future__ import annotations

from typing import Mapping, Optional, Set

from migrate.checkpoint.bundle import Checkpoint
from migrate.checkpoint.model import TensorInfo
from migrate.encoding.dtypes import BY_NAME
from migrate.graph.evidence import Evidence
from migrate.planning.model import Plan
from migrate.planning.options import Options, search
from semisync.common.errors import UsageError

NO_TABLES = ""  # the pattern that says so: as a regular expression it would name everything


def drop_tensors(
    checkpoint: Checkpoint, taken: Set[str], options: Options, result: Plan
) -> Set[str]:
    """Drops what has no place in a torch checkpoint; returns its names. taken: elsewhere."""
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


def choose_tables(
    left: Mapping[str, TensorInfo],
    pattern: Optional[str],
    evidence: Optional[Evidence],
    result: Plan,
) -> Set[str]:
    """The variables among `left` that are tables: those that `pattern` names, else those that the
    graph looks up."""
    if pattern == NO_TABLES:
        return set()
    if pattern is not None:
        return _matching(left, pattern)
    if evidence is None:
        if not any(map(_may_be_table, left.values())):
            return set()
        raise UsageError(
            f"{result.source} has no MetaGraph beside it, so that nothing tells which variables "
            "are embedding tables; give --meta FILE, --tables REGEX, or --no-tables where none is"
        )
    unseen = [name for name in evidence.hidden if name in left and _may_be_table(left[name])]
    if unseen:
        result.notes.append(
            f"functions of the graph use {', '.join(unseen)}; look-ups inside of functions "
            "are not seen: name the tables with --tables REGEX if these are some"
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
    found = {name for name in left if search(pattern, name, "--tables")}
    if not found:
        raise UsageError(f"--tables {pattern!r} names none of the {len(left)} variables")
    for name in sorted(found):
        if not _may_be_table(left[name]):
            raise UsageError(
                f"--tables {pattern!r} names {name!r}, {left[name].dtype} "
                f"{list(left[name].shape)}; a table is [rows, dim] of floats"
            )
    return found
