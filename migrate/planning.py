"""From a checkpoint and its graph to a plan.

1. Slots are joined to their variables (`migrate.slots`).
2. Tables are the variables of two dimensions and a floating type that the graph looks up, or
   those that the caller's regular expression names.
3. The partition strategy of a partitioned table comes from the graph, else from the caller. The
   checkpoint itself does not tell it, and concatenating "mod" partitions would be wrong in silence.
4. So does the pooling; where look-ups do not agree on one, it stays open and a note says so.
5. Hash tables of rows of numbers become tables too; how their ids find a row, the caller says.
6. What is left is dense; scalars stand apart; what cannot be converted is dropped with a reason.
"""

from __future__ import annotations

import os
import re
from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from migrate.evidence import Evidence, find_evidence, meta_path
from migrate.hyperparameters import find_hyperparameters, lazily_updated
from migrate.ids.modes import DUPLICATES, MODES
from migrate.ids.states import find_states
from migrate.ids.summary import tensors_of
from migrate.lookups import Lookup
from migrate.plans import CASTS, POOLINGS, STRATEGIES, Dense, HashedTable, Plan, Table
from migrate.slots import Slots, find_slots, optimizer_names, torch_names
from migrate.sources.bundle import Checkpoint
from migrate.sources.dtypes import BY_NAME
from migrate.sources.hashed import HashTable
from migrate.sources.increment import Overlaid
from migrate.sources.info import TensorInfo, partitions, row_blocks
from migrate.static import Marks, mark_static
from migrate.tables import hash_tables
from semisync.errors import BadInput, UsageError


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
    """Decides what each tensor of `checkpoint` becomes.

    meta                path of the MetaGraph; `PREFIX.meta` is taken where it exists
    tables              regular expression (re.search) for the variables that are tables; without
                        it they are those that the graph looks up
    partition_strategy  "div" or "mod", for partitioned tables whose strategy the graph lacks
    module              path of the EmbeddingBagCollection in the model
    rename              (regular expression, replacement) pairs; each is applied in turn to the
                        names of tables and dense variables (re.sub)
    cast                "float16" or "bfloat16": data type of the tables in the target
    drop                regular expression (re.search) for tensors to leave out
    static              (regular expression, "fp16", "int8" or "float32") pairs (re.search): tables
                        that are trained no more, and their type in the target; the first one wins
    ids                 how the target finds the row of a hash table's id, see migrate.ids.modes
    duplicates          "error" or "newest": an id that two partitions of a hash table hold

    Raises UsageError where the caller has to say more, BadInput where graph and checkpoint do not
    fit each other or contradict the caller.
    """
    if partition_strategy not in (None, *STRATEGIES):
        raise UsageError(f"partition strategy {partition_strategy!r}: expected 'div' or 'mod'")
    if cast not in (None, *CASTS):
        raise UsageError(f"cast {cast!r}: expected one of {list(CASTS)}")
    if ids not in MODES or duplicates not in DUPLICATES:
        raise UsageError(
            f"ids {ids!r}, duplicates {duplicates!r}: expected one of {list(MODES)} and one of "
            f"{list(DUPLICATES)}"
        )
    hashed = hash_tables(checkpoint, meta)
    # A MetaGraph is asked of variables; hash tables it saves another way
    taken = {name for table in hashed.values() for name in tensors_of(table)}
    found = meta_path(checkpoint, meta) if set(checkpoint) - taken else None
    planner = _Planner(checkpoint, find_evidence(checkpoint, found), partition_strategy, module)
    planner.rename, planner.cast, planner.leave_out = rename, cast, drop
    planner.static = static
    planner.hashed, planner.ids, planner.duplicates = hashed, ids, duplicates
    planner.result.meta = planner.result.meta or (None if meta is None else os.path.abspath(meta))
    return planner.plan(tables)


class _Planner:
    """The facts that the decisions rest on, and the plan as it grows."""

    rename: Sequence[Tuple[str, str]] = ()
    cast: Optional[str] = None
    leave_out: Optional[str] = None
    static: Marks = ()
    hashed: Mapping[str, HashTable] = {}
    ids = "rows"
    duplicates = "error"

    def __init__(
        self,
        checkpoint: Checkpoint,
        evidence: Optional[Evidence],
        strategy: Optional[str],
        module: str,
    ) -> None:
        self.checkpoint = checkpoint
        self.graph = evidence.graph if evidence else None
        self.strategy = strategy
        saved = evidence.saved if evidence else {}
        self.lookups = evidence.lookups if evidence else {}
        self.poolings = evidence.poolings if evidence else {}
        self.hidden = evidence.hidden if evidence else []
        self.slots = find_slots(checkpoint, optimizer_names(self.graph, saved))
        self.hyperparameters = find_hyperparameters(self.graph, saved) if self.graph else {}
        self.lazy = lazily_updated(self.graph, saved) if self.graph else set()
        path = self.graph.path if self.graph else None
        self.renamed: Set[str] = set()  # patterns of `rename` that some name has
        newer = checkpoint.newer.prefix if isinstance(checkpoint, Overlaid) else None
        self.result = Plan(source=checkpoint.prefix, module=module, meta=path, newer=newer)

    def plan(self, pattern: Optional[str]) -> Plan:
        """The whole plan; `pattern` names the tables."""
        taken = self._hash_tables()
        taken |= self._drop(taken)
        for slots in self.slots.values():
            taken.update(slots.sources.values())
        left = {name: info for name, info in self.checkpoint.items() if name not in taken}
        chosen = self._tables(left, pattern)
        for name, info in left.items():
            if name in chosen:
                self.result.tables.append(self._table(name, info))
            elif info.shape:
                self.result.dense.append(self._dense(name, info))
            else:
                self.result.scalars.append(name)
        for pattern, _ in self.rename:
            if pattern not in self.renamed:
                raise UsageError(f"--rename {pattern!r} names no table and no dense variable")
        mark_static(self.result, self.static)
        self._note_dims()
        return self.result

    def _hash_tables(self) -> Set[str]:
        """Plans the hash tables; returns the names of their tensors."""
        taken = set()
        for name, table in self.hashed.items():
            tensors = tensors_of(table)
            taken |= tensors
            reason = _why_not(table)
            if self.leave_out is not None and any(
                _search(self.leave_out, one, "--drop") for one in (name, *tensors)
            ):
                reason = f"--drop {self.leave_out}"
            if reason is None:
                self.result.hash_tables.append(self._hashed(table))
            else:
                self.result.dropped.update(dict.fromkeys(sorted(tensors) or [name], reason))
        return taken

    def _hashed(self, table: HashTable) -> HashedTable:
        states = find_states(table)
        if table.filtered is not None:
            self.result.notes.append(
                f"{table.name}: {table.filtered.stored} ids that were counted, but not admitted "
                "yet, have no rows: they are left out"
            )
        return HashedTable(
            name=re.sub(r"[/.]", "_", self._renamed(table.name)),
            table=table.name,
            kind=table.kind,
            stored=table.stored,
            dim=table.value_shape[0],
            dtype=table.dtype,
            ids=self.ids,
            duplicates=self.duplicates,
            optimizer=states.optimizer,
            slots=states.slots,
            fill=states.fill,
            cast=None if self.cast == table.dtype else self.cast,
        )

    def _drop(self, taken: Set[str]) -> Set[str]:
        """Drops what has no place in a torch checkpoint; returns its names. taken: elsewhere."""
        dropped = self.result.dropped
        for name, info in self.checkpoint.items():
            if name in taken:
                continue
            if self.leave_out is not None and _search(self.leave_out, name, "--drop"):
                dropped[name] = f"--drop {self.leave_out}"
            elif BY_NAME[info.dtype].torch is None:
                dropped[name] = f"torch has no tensors of type {info.dtype}"
        if self.leave_out is not None and f"--drop {self.leave_out}" not in dropped.values():
            raise UsageError(
                f"--drop {self.leave_out!r} names none of the {len(self.checkpoint)} tensors"
            )
        return set(dropped)

    def _tables(self, left: Mapping[str, TensorInfo], pattern: Optional[str]) -> Set[str]:
        if pattern is not None:
            return _matching(left, pattern)
        if self.graph is None:
            if self.hashed and not any(map(_may_be_table, left.values())):
                return set()
            raise UsageError(
                f"{self.checkpoint.prefix}.meta does not exist, so that nothing tells which "
                "variables are embedding tables; give --meta FILE or --tables REGEX"
            )
        unseen = [name for name in self.hidden if name in left and _may_be_table(left[name])]
        if unseen:
            self.result.notes.append(
                f"functions of the graph use {', '.join(unseen)}; look-ups inside of functions "
                "are not seen: name the tables with --tables REGEX if these are some"
            )
        chosen = set()
        for name in self.lookups:
            if name not in left:
                continue
            if not _may_be_table(left[name]):
                self.result.notes.append(
                    f"{name} is looked up, but is {left[name].dtype} {list(left[name].shape)} and "
                    "no [rows, dim] of floats: it stays among the dense variables"
                )
            else:
                chosen.add(name)
        return chosen

    def _table(self, name: str, info: TensorInfo) -> Table:
        if name in self.lookups and self.lookups[name].shared:
            raise BadInput(
                f"{name!r} is one of several variables that a look-up treats as partitions of one "
                "table, which is not supported yet; name the other tables with --tables REGEX to "
                "convert these as dense variables"
            )
        slots = self.slots.get(name)
        pooling, weighted = self._pooling_of(name)
        return Table(
            name=re.sub(r"[/.]", "_", self._renamed(name)),  # a module's name has no dot
            variable=name,
            rows=info.shape[0],
            dim=info.shape[1],
            dtype=info.dtype,
            partitions=partitions(info),
            partition_strategy=self._strategy_of(name, info, required=True),
            optimizer=self._optimizer_of(slots),
            slots=self._slots_of(slots, fused=True),
            hyperparameters=self._hyperparameters_of(slots),
            cast=None if self.cast == info.dtype else self.cast,
            pooling=pooling,
            weighted=weighted,
        )

    def _pooling_of(self, name: str) -> Tuple[Optional[str], bool]:
        """The combiner of all look-ups, and whether they are weighted; None where none is sure."""
        uses = self.poolings.get(name, [])
        if len(uses) == 1 and uses[0].combiner in POOLINGS:
            return uses[0].combiner, uses[0].weighted
        if uses:
            self.result.notes.append(
                f"{name} is looked up as {', '.join(map(str, uses))}, which is not one pooling "
                "that the graph tells: set it in the plan or in the model config"
            )
        return None, False

    def _renamed(self, name: str) -> str:
        for pattern, replacement in self.rename:
            try:
                name, times = re.subn(pattern, replacement, name)
            except (re.error, IndexError) as error:
                raise UsageError(
                    f"--rename {pattern}={replacement} is no substitution: {error}"
                ) from error
            if times:
                self.renamed.add(pattern)
        return name

    def _optimizer_of(self, slots: Optional[Slots]) -> Optional[str]:
        if slots is None:
            return None
        if slots.optimizer == "Adam" and self.lazy & set(slots.sources.values()):
            return "LazyAdam"
        return slots.optimizer

    def _hyperparameters_of(self, slots: Optional[Slots]) -> Dict[str, float]:
        if slots is None or 0 not in slots.sources:
            return {}
        return dict(self.hyperparameters.get(slots.sources[0].rpartition("/")[2], {}))

    def _dense(self, name: str, info: TensorInfo) -> Dense:
        slots = self.slots.get(name)
        renamed = self._renamed(name)
        return Dense(
            variable=name,
            name=None if renamed == name else renamed,
            shape=list(info.shape),
            dtype=info.dtype,
            partition_strategy=self._strategy_of(name, info, required=name in self.lookups),
            optimizer=slots.optimizer if slots else None,
            slots=self._slots_of(slots, fused=False),
        )

    def _strategy_of(self, name: str, info: TensorInfo, required: bool) -> Optional[str]:
        """The graph's word, else the caller's; a contradiction between them is refused."""
        if partitions(info) == 1:
            return None
        if not required:
            return None  # a variable that is not looked up is its parts, one after the other
        lookup = self.lookups.get(name, Lookup("unknown", False))
        found = None if lookup.strategy == "unknown" else lookup.strategy
        if found and self.strategy and found != self.strategy:
            raise BadInput(
                f"{name!r}: its look-up uses partition strategy {found!r}, but "
                f"--partition-strategy says {self.strategy!r}; leave the option out"
            )
        strategy = found or self.strategy
        if strategy is None:
            raise UsageError(
                f"{name!r} has {partitions(info)} partitions, and nothing tells how ids were "
                "dealt to them; give --meta FILE or --partition-strategy div|mod"
            )
        row_blocks(info, name)
        return strategy

    def _slots_of(self, slots: Optional[Slots], fused: bool) -> Dict[str, str]:
        found: Dict[str, str] = {}
        if slots is None:
            return found
        for (_, source), name in zip(sorted(slots.sources.items()), torch_names(slots, fused)):
            if source in self.result.dropped:
                continue
            if name is None:
                self.result.dropped[source] = f"{slots.optimizer} has no such slot"
            else:
                found[name] = source
        return found

    def _note_dims(self) -> None:
        tables: List[Union[Table, HashedTable]] = [*self.result.tables, *self.result.hash_tables]
        odd = [f"{table.name} ({table.dim})" for table in tables if table.dim % 4]
        if odd:
            self.result.notes.append(
                "FBGEMM's fused kernels want a dim that is a multiple of 4; not so: "
                + ", ".join(odd)
            )


def _why_not(table: HashTable) -> Optional[str]:
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


def _may_be_table(info: TensorInfo) -> bool:
    return len(info.shape) == 2 and BY_NAME[info.dtype].is_floating


def _matching(left: Mapping[str, TensorInfo], pattern: str) -> Set[str]:
    """The variables that `pattern` names; each must have a table's shape."""
    found = {name for name in left if _search(pattern, name, "--tables")}
    if not found:
        raise UsageError(f"--tables {pattern!r} names none of the {len(left)} variables")
    for name in sorted(found):
        if not _may_be_table(left[name]):
            raise UsageError(
                f"--tables {pattern!r} names {name!r}, {left[name].dtype} "
                f"{list(left[name].shape)}; a table is [rows, dim] of floats"
            )
    return found


def _search(pattern: str, name: str, option: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error as error:
        raise UsageError(f"{option} {pattern!r} is not a regular expression: {error}") from error
