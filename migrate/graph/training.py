"""What trained each variable of a checkpoint: its optimizer, slots and hyperparameters.

1. The training ops of the MetaGraph name them exactly, whatever they are called
   (`migrate.graph.training_ops`).
2. The object graph of an object-based checkpoint names the owner of a slot, `.OPTIMIZER_SLOT`; the
   slot's full name or its own tells the optimizer.
3. Names are the fallback, `<variable>/<optimizer>` and `<variable>/<optimizer>_k`, also below the
   variable_scope in which `minimize` ran, `<scope>/<variable>/<optimizer>`.

What looks like a slot and belongs to nothing is an orphan, of which the plan says so.
"""

from __future__ import annotations

import re
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Set, Tuple

from migrate.checkpoint.bundle import Checkpoint
from migrate.checkpoint.kinds import OPTIMIZERS
from migrate.encoding.dtypes import BY_NAME
from migrate.graph.find import MetaGraph
from migrate.graph.training_ops import find_updates, unknown_updates
from migrate.graph.updates import Update
from migrate.optimizers.slots import Slots, slot_of
from semisync.common.errors import BadInput

_KERAS_SLOTS = {"m": ("Adam", 0), "v": ("Adam", 1)}  # Keras's Adam, whose step is the same
_KERAS_EPSILON = 1e-7
_KERAS_STATE = re.compile(r"(^|/)_variables/\d+/\.ATTRIBUTES/VARIABLE_VALUE")
_NAMED = 5  # tensors at most that a note names


class Training(NamedTuple):
    """What is known of the optimizers of a checkpoint's variables.

    slots    by variable
    orphans  tensors that look like slots -> what they look like
    lacking  variables that the graph trains with slots which the checkpoint lacks -> the optimizer
    guessed  variables whose slots have the name of a training op's, but no training op of their own
    keras    variables whose slots are those of Keras's Adam
    """

    slots: Dict[str, Slots]
    orphans: Dict[str, str]
    lacking: Dict[str, str]
    guessed: List[str]
    keras: List[str]

    def slot_tensors(self) -> Dict[str, str]:
        """Each slot -> its variable."""
        return {
            source: variable
            for variable, slots in self.slots.items()
            for source in slots.sources.values()
        }

    def notes(self) -> List[str]:
        """What was not found of the optimizers' state."""
        found = []
        if self.orphans:
            reasons = dict.fromkeys(self.orphans.values())
            found.append(
                f"{_listed(self.orphans)} {' and '.join(reasons)}, and nothing tells whose they "
                "are: they become dense variables, and no optimizer gets them; a MetaGraph that "
                "trains with them would tell, or the slots of the plan"
            )
        if self.lacking:
            found.append(
                f"the MetaGraph trains {_listed(self.lacking)} with "
                f"{', '.join(sorted(set(self.lacking.values())))}, but the checkpoint lacks the "
                "slots: their optimizer state begins anew"
            )
        if self.guessed:
            found.append(
                f"the MetaGraph updates {_listed(self.guessed)} by ops of no form that is known "
                "here: slots and hyperparameters are those that the names tell, and what else the "
                "update does is not carried over"
            )
        if self.keras:
            found.append(
                f"the slots of {_listed(self.keras)} are those of Keras's Adam, whose epsilon is "
                f"taken to be its default, {_KERAS_EPSILON:g}; where it was another, set the "
                "hyperparameters in the plan"
            )
        return found


def find_training(
    checkpoint: Checkpoint,
    meta: Optional[MetaGraph],
    left_out: Callable[[str], bool] = lambda name: False,
) -> Training:
    """What the MetaGraph, the object graph and the names say, in this order.

    left_out: whether the caller leaves a tensor out; it is no slot then.
    Raises BadInput where two optimizers have slots of one variable.
    """
    finder = _Finder(checkpoint, left_out)
    if meta is not None:
        stored = {node: where.name for node, where in meta.saved.items()}
        finder.add_updates(find_updates(meta.graph), stored)
        finder.add_unknown(unknown_updates(meta.graph), stored)
        finder.add_named(stored)
    finder.add_objects()
    finder.add_named({name: name for name in checkpoint})
    return finder.result()


class _Finder:
    """Collects from one source after the other; what an earlier one has said stands.

    names: what the last part of a slot's name stands for, "Adam" and what the graph calls so.
    """

    def __init__(self, checkpoint: Checkpoint, left_out: Callable[[str], bool]) -> None:
        self._checkpoint = checkpoint
        self._left_out = left_out
        self._slots: Dict[str, Slots] = {}
        self._owners: Dict[str, str] = {}
        self._orphans: Dict[str, str] = {}
        self._lacking: Dict[str, str] = {}
        self._names = {name: name for name in OPTIMIZERS}
        self._by_leaf: Dict[str, Slots] = {}
        self._guessed: Set[str] = set()
        self._keras: Set[str] = set()

    def result(self) -> Training:
        """All that was found; a variable with slots of its own is no orphan."""
        orphans = {
            name: reason
            for name, reason in self._orphans.items()
            if name not in self._owners and name not in self._slots
        }
        lacking = {name: one for name, one in self._lacking.items() if name not in self._slots}
        return Training(self._slots, orphans, lacking, sorted(self._guessed), sorted(self._keras))

    def add_updates(self, updates: Iterable[Update], stored: Mapping[str, str]) -> None:
        """Training ops. stored: variable nodes -> their names in the checkpoint."""
        for update in updates:
            leaf = update.slots[0].rpartition("/")[2]
            found = Slots(update.optimizer, {}, dict(update.hyperparameters), update.lazy, True)
            self._learn(leaf, found)
            if update.variable not in stored:
                continue
            variable = stored[update.variable]
            sources = {k: stored[node] for k, node in enumerate(update.slots) if node in stored}
            if len(sources) < len(update.slots):
                self._lacking[variable] = update.optimizer
                continue
            kept = {k: source for k, source in sources.items() if not self._left_out(source)}
            if kept:
                self._join(variable, found._replace(sources=kept))

    def add_unknown(
        self, updates: Iterable[Tuple[str, str, str]], stored: Mapping[str, str]
    ) -> None:
        """What ops that are not known read beside the variable, in its shape."""
        for variable, other, op in updates:
            names = stored.get(variable), stored.get(other)
            if names[0] is not None and names[1] is not None and self._alike(names[0], names[1]):
                self._orphans[names[1]] = f"are read by {op}, which is not known here"

    def add_objects(self) -> None:
        """The object graph; its slots never have an owner by names."""
        graph = self._checkpoint.objects()
        for key, (variable, name) in graph.slots.items():
            if key in self._owners or key not in self._checkpoint or self._left_out(key):
                continue
            leaf = graph.full_names.get(key, "").rpartition("/")[2]
            by_name, by_slot = slot_of(leaf, self._names), _KERAS_SLOTS.get(name)
            if by_name is not None and self._alike(variable, key):
                self._join(variable, Slots(by_name[0], {by_name[1]: key}))
            elif by_slot is not None and self._alike(variable, key):
                self._keras.add(variable)
                values: Dict[str, Optional[float]] = {"epsilon": _KERAS_EPSILON}
                self._join(variable, Slots(by_slot[0], {by_slot[1]: key}, values))
            elif self._checkpoint[key].shape:
                self._orphans[key] = f"are slots {name!r} of an optimizer that is not known here"
        for key in self._checkpoint:
            if _KERAS_STATE.search(key) and self._checkpoint[key].shape:
                self._orphans[key] = "are variables of an optimizer of Keras"

    def add_named(self, stored: Mapping[str, str]) -> None:
        """Names. stored: what variables are called, in the graph or in the checkpoint, -> their
        names in the checkpoint."""
        below_scope: List[Tuple[str, str, str]] = []
        explained = set(self._slots)
        for called, name in stored.items():
            base, _, leaf = called.rpartition("/")
            if name in self._owners or not self._may_be_slot(name, leaf):
                continue
            if base in stored and self._alike(stored[base], name):
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
        while "/" in base:
            base = base.partition("/")[2]
            if base in stored and self._alike(stored[base], name):
                return stored[base]
        return None

    def _may_be_slot(self, name: str, leaf: str) -> bool:
        info = self._checkpoint[name]
        floats = bool(info.shape) and BY_NAME[info.dtype].is_floating
        return floats and not self._left_out(name) and slot_of(leaf, self._names) is not None

    def _orphan(self, name: str) -> None:
        self._orphans.setdefault(name, "look like slots of an optimizer by their names")

    def _join_named(self, variable: str, name: str, leaf: str) -> None:
        kind = slot_of(leaf, self._names)
        if kind is not None:
            optimizer, index = kind
            base = leaf if leaf in self._names else leaf.rpartition("_")[0]
            known = self._by_leaf.get(base)
            if known is not None:
                self._guessed.add(variable)
            values = {} if known is None else known.hyperparameters
            self._join(variable, Slots(optimizer, {index: name}, dict(values)))

    def _learn(self, leaf: str, found: Slots) -> None:
        """What slots whose names end with `leaf` are; a name of two optimizers tells nothing."""
        known = self._by_leaf.get(leaf)
        if known is not None and known.optimizer != found.optimizer:
            self._names.pop(leaf, None)
            return
        self._names[leaf] = found.optimizer
        self._by_leaf[leaf] = found if known is None else _agreed(known, found)

    def _join(self, variable: str, found: Slots) -> None:
        """Enters slots; those of the parts of a variable are the same."""
        known = self._slots.get(variable, found)
        sources = {**known.sources, **found.sources}
        others = [k for k in found.sources if sources[k] != known.sources.get(k, sources[k])]
        if known.optimizer != found.optimizer or others:
            tell = "" if found.by_graph else "give the MetaGraph that trained it, or "
            raise BadInput(
                f"variable {variable!r} has slots of two optimizers, "
                f"{next(iter(found.sources.values()))!r} and "
                f"{next(iter(known.sources.values()))!r}; {tell}leave those of one out by --drop "
                "REGEX"
            )
        self._slots[variable] = _agreed(known, found)._replace(sources=sources)
        self._owners.update(dict.fromkeys(found.sources.values(), variable))

    def _alike(self, variable: str, slot: str) -> bool:
        """Whether both are there, of floats and of one shape; a slot may have more precision."""
        one, other = self._checkpoint.get(variable), self._checkpoint.get(slot)
        if one is None or other is None or one.shape != other.shape:
            return False
        return all(BY_NAME[info.dtype].is_floating for info in (one, other))


def _agreed(one: Slots, other: Slots) -> Slots:
    """`one` with the hyperparameters in which both agree; None where they differ."""
    values = dict(one.hyperparameters)
    for name, value in other.hyperparameters.items():
        if values.setdefault(name, value) != value:
            values[name] = None
    return one._replace(hyperparameters=values, lazy=one.lazy or other.lazy)


def _listed(names: Iterable[str]) -> str:
    found = sorted(names)
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more
