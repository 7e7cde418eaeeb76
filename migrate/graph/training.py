"""How each variable of a checkpoint was trained: its optimizer, slots and hyperparameters.

1. The training ops of the MetaGraph name them exactly, whatever they are called
   (`migrate.graph.updates`).
2. The object graph of an object-based checkpoint names the owner of a slot, `.OPTIMIZER_SLOT`; the
   slot's full name or its own shows the optimizer.
3. Names are the fallback, `<variable>/<optimizer>` and `<variable>/<optimizer>_k`, also below the
   variable_scope in which `minimize` ran, `<scope>/<variable>/<optimizer>`.
4. The counters of a step, such as the global step and Adam's powers, are found in the MetaGraph's
   steps (`migrate.graph.changes`); names and types are the fallback, which is reported as a guess.

A tensor that looks like a slot and belongs to no variable is an orphan, and the plan reports it.
"""

from __future__ import annotations

import re
from typing import (
    Callable,
    Dict,
    FrozenSet,
    Iterable,
    List,
    Mapping,
    NamedTuple,
    Optional,
    Set,
    Tuple,
)

from graph_rewrite.graph.ops import TRAINING_OP
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.objects import VALUE_OF
from migrate.graph.changes import find_changes
from migrate.graph.find import MetaGraph
from migrate.graph.lookups import origin
from migrate.graph.metagraph import Graph
from migrate.graph.slot_owners import SlotOwners
from migrate.graph.updates import VariableUpdate, every_update, unknown_updates
from migrate.optimizers.adam import ADAM, LAZY_ADAM
from migrate.optimizers.registry import OPTIMIZERS
from migrate.optimizers.slots import Slots, slot_of
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.encoding.dtypes import BY_NAME

_KERAS_SLOTS = {  # name of a slot of Keras's optimizer -> the same in TensorFlow's, and epsilon
    slot.name: (record.name, k, record.keras_epsilon)
    for record in OPTIMIZERS.values()
    if record.keras_epsilon is not None
    for k, slot in enumerate(record.slots)
}
_KERAS_STATE = re.compile(r"(^|/)_variables/\d+" + re.escape(VALUE_OF))
_COUNTS = re.compile(r"global_step|beta\d_power(_\d+)?")  # last parts of names


class Training(NamedTuple):
    """The optimizers of a checkpoint's variables, where known.

    Attributes:
        slots: by variable.
        orphans: tensors that look like slots -> their apparent kind.
        lacking: variables that the graph trains, but whose slots are missing -> the optimizer.
        guessed: variables without a training op, whose slots are named like those of another's op.
        by_hand: variables that the graph trains by ops of no known form, and that have no slots.
        keras: variables whose slots are those of Keras's Adam.
        conflicts: sentences: which variables have slots of a second optimizer, left out here.
        counters: scalars that a step counts with, such as the global step and Adam's powers.
        likely: those of `counters` that are guessed by names and types alone.
    """

    slots: Dict[str, Slots]
    orphans: Dict[str, str]
    lacking: Dict[str, str]
    guessed: List[str]
    by_hand: List[str]
    keras: List[str]
    conflicts: List[str]
    counters: FrozenSet[str]
    likely: List[str]

    def slot_tensors(self) -> Dict[str, str]:
        """The variable of each slot tensor."""
        return {
            source: variable
            for variable, slots in self.slots.items()
            for source in slots.sources.values()
        }

    def notes(self) -> List[str]:
        """Sentences on state of the optimizers that was not found."""
        notes = list(self.conflicts)
        if self.orphans:
            reasons = dict.fromkeys(self.orphans.values())
            notes.append(
                f"{some_of(sorted(self.orphans))} {' and '.join(reasons)}, and nothing tells whose "
                "they are: they become dense variables, and no optimizer gets them; a MetaGraph "
                "that trains with them would tell, or the slots of the plan"
            )
        if self.lacking:
            notes.append(
                f"the MetaGraph trains {some_of(sorted(self.lacking))} with "
                f"{', '.join(sorted(set(self.lacking.values())))}, but the checkpoint lacks the "
                "slots: their optimizer state starts over"
            )
        if self.guessed:
            notes.append(
                f"the MetaGraph updates {some_of(sorted(self.guessed))} by ops of no form that is "
                "known here: slots and hyperparameters are those that the names tell, and what "
                "else the update does is not carried over"
            )
        if self.by_hand:
            notes.append(
                f"the MetaGraph trains {some_of(self.by_hand)} by ops of no form that is known "
                "here: what their optimizer keeps becomes dense variables, and none gets it"
            )
        if self.keras:
            notes.append(
                f"the slots of {some_of(sorted(self.keras))} are those of Keras's Adam, whose "
                f"epsilon is taken to be its default, {ADAM.keras_epsilon:g}; where it was "
                "another, set the hyperparameters in the plan"
            )
        if self.likely:
            notes.append(
                f"{some_of(sorted(self.likely))} are taken for counters by their names and types: "
                "there is no MetaGraph that tells what a training step counts with"
            )
        return notes


def find_training(
    checkpoint: Checkpoint,
    meta: Optional[MetaGraph],
    left_out: Callable[[str], bool] = lambda name: False,
    conflicts: bool = False,
) -> Training:
    """The optimizers by the MetaGraph, the object graph and the names, in this order.

    Args:
        left_out: whether the caller leaves a tensor out; it is not a slot then.
        conflicts: whether slots of one variable by two optimizers are a note rather than an error.

    Raises:
        BadInput: a variable has such slots.
    """
    finder = _Finder(checkpoint, left_out)
    if meta is not None:
        stored = {node: where.name for node, where in meta.saved.items()}
        updates = every_update(meta.graph)
        finder.add_changes(meta.graph, updates, stored)
        finder.add_updates(meta.graph, updates, stored)
        finder.add_unknown(unknown_updates(meta.graph), stored)
        finder.add_named(stored)
    finder.add_objects()
    finder.add_named({name: name for name in checkpoint})
    training = finder.result()
    if training.conflicts and not conflicts:
        raise BadInput(training.conflicts[0])
    return training


class _Finder:
    """Collects from one source after another; an earlier one takes precedence."""

    def __init__(self, checkpoint: Checkpoint, left_out: Callable[[str], bool]) -> None:
        self._checkpoint = checkpoint
        self._left_out = left_out
        self._slots = SlotOwners()
        self._orphans: Dict[str, str] = {}
        self._lacking: Dict[str, str] = {}
        self._guessed: Set[str] = set()
        self._by_hand: Set[str] = set()
        self._keras: Set[str] = set()
        self._counters: Set[str] = set()
        self._in_training: Set[str] = set()  # variables of a graph that trains

    def result(self) -> Training:
        """The findings; a variable with slots of its own is not an orphan."""
        slots = self._slots.by_variable
        orphans = {
            name: reason
            for name, reason in self._orphans.items()
            if name not in self._slots.owners and name not in slots
        }
        lacking = {name: kind for name, kind in self._lacking.items() if name not in slots}
        likely = [name for name in self._checkpoint if self._looks_like_counter(name)]
        return Training(
            slots=slots,
            orphans=orphans,
            lacking=lacking,
            guessed=sorted(self._guessed),
            by_hand=sorted(self._by_hand - slots.keys()),
            keras=sorted(self._keras),
            conflicts=[*self._slots.conflicts.values()],
            counters=frozenset([*self._counters, *likely]),
            likely=likely,
        )

    def add_changes(
        self, graph: Graph, updates: Iterable[VariableUpdate], stored: Mapping[str, str]
    ) -> None:
        """Adds the counters of the steps, and the variables that none of the updates trains, but a
        step does; `stored` has variables' names in the checkpoint by node."""
        changes = find_changes(graph)
        if changes.written:
            self._in_training.update(stored.values())
        for node in changes.counters:
            self._add_counter(stored.get(node))
        known = {update.variable for update in updates} | changes.counters.keys()
        trained = changes.written.keys() & (graph.trainable or frozenset()) - known
        for node in trained & stored.keys():
            if not any(TRAINING_OP.match(writer.op) for writer in changes.written[node]):
                self._by_hand.add(stored[node])

    def _add_counter(self, name: Optional[str]) -> None:
        if name is not None and not self._checkpoint[name].shape:
            self._counters.add(name)

    def _looks_like_counter(self, name: str) -> bool:
        """Whether a scalar is a counter by name or type, if it is in no graph that trains."""
        info = self._checkpoint[name]
        known = self._counters | self._in_training | self._slots.owners.keys()
        if info.shape or name in known or name in self._slots.by_variable:
            return False
        leaf = name.replace(VALUE_OF, "").rpartition("/")[2]
        slot = slot_of(leaf)  # DeepRec counts each variable's powers among its slots
        power = slot is not None and slot[1] >= len(OPTIMIZERS[slot[0]].all_slots)
        integer = BY_NAME[info.dtype].is_integer
        return integer or power or _COUNTS.fullmatch(leaf) is not None

    def add_updates(
        self, graph: Graph, updates: Iterable[VariableUpdate], stored: Mapping[str, str]
    ) -> None:
        """Adds the updates that have slots; `stored` has variables' names in the checkpoint by
        node."""
        for update in updates:
            if not update.slots:
                continue
            power = _power(graph, update, stored)
            self._add_counter(power)
            slots = Slots(
                optimizer=update.optimizer.leaf,
                sources={},
                hyperparameters=dict(update.hyperparameters),
                lazy=update.optimizer.name == LAZY_ADAM.name,
                by_graph=True,
                power=power,
            )
            # Variables that no known op trains may have slots of these names, see `add_named`.
            self._slots.learn(update.slots[0].rpartition("/")[2], slots)
            if update.variable not in stored:
                continue
            variable = stored[update.variable]
            sources = {k: stored[node] for k, node in enumerate(update.slots) if node in stored}
            if len(sources) < len(update.slots):
                self._lacking[variable] = slots.optimizer
                continue
            kept = {k: source for k, source in sources.items() if not self._left_out(source)}
            if kept:
                self._slots.join(variable, slots._replace(sources=kept))

    def add_unknown(
        self, updates: Iterable[Tuple[str, str, str]], stored: Mapping[str, str]
    ) -> None:
        """Adds as orphans the tensors that unknown training ops read together with a variable
        of the same shape."""
        for variable, other, op in updates:
            names = stored.get(variable), stored.get(other)
            if names[0] is not None and names[1] is not None and self._fits(names[0], names[1]):
                self._orphans[names[1]] = f"are read by {op}, which is not known here"

    def add_objects(self) -> None:
        """Adds the slots of the object graph; these are never assigned an owner by name."""
        graph = self._checkpoint.objects()
        for key, (variable, name) in graph.slots.items():
            if key in self._slots.owners or key not in self._checkpoint or self._left_out(key):
                continue
            leaf = graph.full_names.get(key, "").rpartition("/")[2]
            by_name, by_slot = self._slots.meaning(leaf), _KERAS_SLOTS.get(name)
            if by_name is not None and self._fits(variable, key):
                optimizer, k = by_name
                self._slots.join(variable, Slots(optimizer, {k: key}))
            elif by_slot is not None and self._fits(variable, key):
                optimizer, k, epsilon = by_slot
                self._keras.add(variable)
                self._slots.join(variable, Slots(optimizer, {k: key}, {"epsilon": epsilon}))
            elif self._checkpoint[key].shape:
                self._orphans[key] = f"are slots {name!r} of an optimizer that is not known here"
        for key in self._checkpoint:
            if _KERAS_STATE.search(key) and self._checkpoint[key].shape:
                self._orphans[key] = "are variables of an optimizer of Keras"

    def add_named(self, stored: Mapping[str, str]) -> None:
        """Adds the slots that their names identify.

        Args:
            stored: names of variables, in the graph or in the checkpoint -> those in the
                checkpoint.
        """
        below_scope: List[Tuple[str, str, str]] = []
        # Variables whose slots an earlier source named: another tensor with such a name is an
        # orphan.
        explained = set(self._slots.by_variable)
        for called, name in stored.items():
            base, _, leaf = called.rpartition("/")
            if name in self._slots.owners or not self._may_be_slot(name, leaf):
                continue
            if base in stored and self._fits(stored[base], name):
                if stored[base] not in explained:
                    self._join_named(stored[base], name, leaf)
                else:
                    self._orphan(name)
            else:
                below_scope.append((base, name, leaf))
        for base, name, leaf in below_scope:
            owner = self._owner(base, name, stored)
            if owner is None or owner in explained:
                self._orphan(name)
            else:
                self._join_named(owner, name, leaf)

    def _owner(self, base: str, name: str, stored: Mapping[str, str]) -> Optional[str]:
        """The variable that `base` ends with, below a scope: the one of the longest name."""
        # From the longest name to the shortest.
        while "/" in base:
            base = base.partition("/")[2]
            if base in stored and self._fits(stored[base], name):
                return stored[base]
        return None

    def _may_be_slot(self, name: str, leaf: str) -> bool:
        info = self._checkpoint[name]
        if not BY_NAME[info.dtype].is_floating or self._left_out(name):
            return False
        slot = self._slots.meaning(leaf)
        if slot is None or info.shape:
            return slot is not None
        return slot[1] < len(OPTIMIZERS[slot[0]].all_slots)  # else a power, as DeepRec names it

    def _orphan(self, name: str) -> None:
        self._orphans.setdefault(name, "look like slots of an optimizer by their names")

    def _join_named(self, variable: str, name: str, leaf: str) -> None:
        meaning, learned = self._slots.meaning(leaf), self._slots.learned(leaf)
        if meaning is not None:
            optimizer, k = meaning
            if learned is not None:
                self._guessed.add(variable)
            values = {} if learned is None else dict(learned.hyperparameters)
            self._slots.join(variable, Slots(optimizer, {k: name}, values))

    def _fits(self, variable: str, slot: str) -> bool:
        """Whether both exist, are floats and have one shape; a slot may have more precision."""
        infos = self._checkpoint.get(variable), self._checkpoint.get(slot)
        if infos[0] is None or infos[1] is None or infos[0].shape != infos[1].shape:
            return False
        return all(info is not None and BY_NAME[info.dtype].is_floating for info in infos)


def _power(graph: Graph, update: VariableUpdate, stored: Mapping[str, str]) -> Optional[str]:
    """The scalar that counts the updates, by its name in the checkpoint."""
    count = update.optimizer.steps
    edge = update.inputs.get(f"{count.decay}_power") if count is not None else None
    node = origin(graph, edge) if edge is not None else None
    return stored.get(node) if node is not None else None
