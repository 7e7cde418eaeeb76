"""Makes the plan's entries: the target of a variable or a hash table, with its slots."""

from __future__ import annotations

from typing import Collection, Dict, Optional, Tuple

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.partitions import partitions, row_blocks
from migrate.checkpoint.tensor_info import TensorInfo
from migrate.graph.averages import swapped_averages, swapped_note, unknown_notes
from migrate.graph.evidence import Evidence
from migrate.graph.lookups import Lookup
from migrate.graph.training import find_training
from migrate.hash_tables.hash_table import HashTable
from migrate.hash_tables.table_slots import table_slots
from migrate.optimizers.registry import LEAVES, OPTIMIZERS
from migrate.optimizers.slots import Slots, torch_names
from migrate.planning.options import Options
from migrate.planning.plan import POOLINGS, Dense, IdMapping, Plan, Table
from semisync.common.errors import BadInput, UsageError


class Entries:
    """Makes the entries of a plan; remarks on them for a reader go to the notes of `result`.

    Attributes:
        slot_tensors: names of all tensors that are slots of variables.
        counters: names of the scalars that a training step counts with.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        evidence: Optional[Evidence],
        options: Options,
        result: Plan,
    ) -> None:
        self._options, self._result = options, result
        self._lookups = evidence.lookups if evidence else {}
        self._poolings = evidence.poolings if evidence else {}
        self._swapped = swapped_averages(evidence.saved if evidence else {})
        training = evidence.training if evidence else find_training(checkpoint, None, options.drops)
        self._slots = training.slots
        self._tensors = checkpoint
        self.slot_tensors = set(training.slot_tensors())
        self.counters = training.counters
        result.notes += training.notes()
        if self._swapped:
            result.notes.append(swapped_note(self._swapped))
        elif evidence is None:
            result.notes += unknown_notes(checkpoint, self._slots)

    def hash_table(self, source: HashTable) -> Table:
        """The entry of the hash table `source`."""
        if source.filtered is not None:
            self._result.notes.append(
                f"{source.name}: {source.filtered.stored} ids that were counted, but not admitted "
                "yet, have no rows: they are left out"
            )
        of_optimizer = table_slots(source)
        return Table(
            name=self._options.table_name_of(source.name),
            variable=source.name,
            dim=source.value_shape[0],
            dtype=source.dtype,
            ids=IdMapping(
                kind=source.kind,
                stored=source.stored,
                mode=self._options.ids,
                duplicates=self._options.duplicates,
                fill=of_optimizer.fill,
            ),
            optimizer=of_optimizer.optimizer,
            slots=of_optimizer.slots,
            cast=self._options.cast_of(source.dtype),
        )

    def table(self, name: str, info: TensorInfo) -> Table:
        """The entry of the variable `name` as a table."""
        if name in self._lookups and self._lookups[name].shared:
            raise BadInput(
                f"{name!r} is one of several variables that a look-up treats as partitions of one "
                "table, which is not supported yet; name the other tables with --tables REGEX to "
                "convert these as dense variables"
            )
        slots = self._slots.get(name)
        self._note_optimizer(slots)
        pooling, weighted = self._pooling_of(name)
        return Table(
            name=self._options.table_name_of(name),
            variable=name,
            rows=info.shape[0],
            dim=info.shape[1],
            dtype=info.dtype,
            partitions=partitions(info),
            partition_strategy=self._strategy_of(name, info, required=True),
            optimizer=slots.variant if slots else None,
            slots=self._slots_of(slots, fused=True),
            hyperparameters=slots.constants if slots else {},
            power=slots.power if slots else None,
            cast=self._options.cast_of(info.dtype),
            pooling=pooling,
            weighted=weighted,
        )

    def dense(self, name: str, info: TensorInfo, tables: Collection[str]) -> Dense:
        """The entry of a variable as a dense one, given the names of the tables."""
        slots = self._slots.get(name)
        renamed = self._options.name_of(name)
        return Dense(
            variable=name,
            name=None if renamed == name else renamed,
            shape=list(info.shape),
            dtype=info.dtype,
            partition_strategy=self._dense_strategy_of(name, info, tables),
            optimizer=slots.variant if slots else None,
            slots=self._slots_of(slots, fused=False),
            hyperparameters=slots.constants if slots else {},
            power=slots.power if slots else None,
        )

    def _pooling_of(self, name: str) -> Tuple[Optional[str], bool]:
        """The combiner of all look-ups, None if it is not sure, and whether they are weighted."""
        uses = self._poolings.get(name, [])
        if len(uses) == 1 and uses[0].combiner in POOLINGS:
            return uses[0].combiner, uses[0].weighted
        if uses:
            self._result.notes.append(
                f"{name} is looked up as {', '.join(map(str, uses))}, which is not one pooling "
                "that the graph tells: set it in the plan or in the model config"
            )
        return None, False

    def _note_optimizer(self, slots: Optional[Slots]) -> None:
        """Notes that an optimizer is known by its training op alone, and may do more beside it."""
        if slots is None or not slots.by_graph or 0 not in slots.sources:
            return
        leaf = slots.sources[0].rpartition("/")[2]
        if leaf in LEAVES or leaf == OPTIMIZERS[slots.optimizer].slots[0].name:
            return
        note = (
            f"slots named {leaf} are {slots.optimizer}'s by the op that updates them; what else "
            "their optimizer does, such as a weight decay of its own, is not carried over"
        )
        if note not in self._result.notes:
            self._result.notes.append(note)

    def _dense_strategy_of(
        self, name: str, info: TensorInfo, tables: Collection[str]
    ) -> Optional[str]:
        """The table's strategy for its moving average T/x, or for T if T/x is the table."""
        owner = self._swapped.get(name, name.rpartition("/")[0])
        if owner not in tables or self._tensors[owner].slices != info.slices:
            return self._strategy_of(name, info, required=name in self._lookups)
        strategy = self._strategy_of(owner, info, required=True)
        if strategy == "mod":
            self._result.notes.append(
                f"{name} has the partitions of table {owner}: its rows, too, are put in the order "
                "of the ids"
            )
        return strategy

    def _strategy_of(self, name: str, info: TensorInfo, required: bool) -> Optional[str]:
        """The graph's strategy, else the caller's; raises BadInput if they contradict."""
        if partitions(info) == 1:
            return None
        if not required:
            return None  # a variable that is not looked up is its parts, one after the other
        lookup = self._lookups.get(name, Lookup("unknown", False))
        # A graph that looks it up as a whole takes ids for rows as they are stored, as "div" does.
        seen = {None: "div", "unknown": None}.get(lookup.strategy, lookup.strategy)
        if seen and self._options.strategy and seen != self._options.strategy:
            raise BadInput(
                f"{name!r}: its look-up uses partition strategy {seen!r}, but "
                f"--partition-strategy says {self._options.strategy!r}; leave the option out"
            )
        strategy = seen or self._options.strategy
        if strategy is None:
            raise UsageError(
                f"{name!r} has {partitions(info)} partitions, and nothing tells how ids were "
                "dealt to them; give --meta FILE or --partition-strategy div|mod"
            )
        row_blocks(info, name)
        return strategy

    def _slots_of(self, slots: Optional[Slots], fused: bool) -> Dict[str, str]:
        sources: Dict[str, str] = {}
        if slots is None:
            return sources
        for (_, source), name in zip(sorted(slots.sources.items()), torch_names(slots, fused)):
            # Left out already, with a reason.
            if source in self._result.dropped:
                continue
            if name is None:
                self._result.dropped[source] = f"{slots.optimizer} has no such slot"
            else:
                sources[name] = source
        return sources
