"""The owners of slots, gathered from one source after another."""

from __future__ import annotations

from typing import Dict, Optional, Tuple

from migrate.optimizers.slots import DEFAULT_NAMES, Slots, slot_of


class SlotOwners:
    """The slots of each variable, and the names of slots.

    by_variable  variable -> its slots
    owners       slot -> its variable
    conflicts    variable with slots of a second optimizer -> a sentence that names it
    """

    def __init__(self) -> None:
        self.by_variable: Dict[str, Slots] = {}
        self.owners: Dict[str, str] = {}
        self.conflicts: Dict[str, str] = {}
        self._names = dict(DEFAULT_NAMES)  # name without _k -> the optimizer
        self._learned: Dict[str, Slots] = {}

    def learn(self, leaf: str, slots: Slots) -> None:
        """Records `leaf` as a name of that optimizer's slots, unless two optimizers use it."""
        known = self._learned.get(leaf)
        if known is not None and known.optimizer != slots.optimizer:
            # Two optimizers of one name: slots with it belong to neither by their names.
            self._names.pop(leaf, None)
            return
        self._names[leaf] = slots.optimizer
        self._learned[leaf] = slots if known is None else _agreed(known, slots)

    def meaning(self, leaf: str) -> Optional[Tuple[str, int]]:
        """(optimizer, k) for the last part of a slot's name; None where it means nothing."""
        return slot_of(leaf, self._names)

    def learned(self, leaf: str) -> Optional[Slots]:
        """The slots that `learn` recorded for names that end with `leaf`, or with `leaf` and _k."""
        # Further slots are called like the first one with _1, _2.
        return self._learned.get(leaf if leaf in self._names else leaf.rpartition("_")[0])

    def join(self, variable: str, slots: Slots) -> None:
        """Adds slots, the same for all parts of a variable, unless it has another optimizer's."""
        known = self.by_variable.get(variable, slots)
        sources = {**known.sources, **slots.sources}
        # Another tensor for the same k: slots of a second optimizer with the same name.
        others = [k for k in slots.sources if sources[k] != known.sources.get(k, sources[k])]
        if known.optimizer != slots.optimizer or others:
            tell = "" if slots.by_graph else "give the MetaGraph that trained it, or "
            self.conflicts.setdefault(
                variable,
                f"variable {variable!r} has slots of two optimizers, "
                f"{next(iter(slots.sources.values()))!r} and "
                f"{next(iter(known.sources.values()))!r}; to convert it, {tell}leave those of one "
                "out by --drop REGEX",
            )
            return
        self.by_variable[variable] = _agreed(known, slots)._replace(sources=sources)
        self.owners.update(dict.fromkeys(slots.sources.values(), variable))


def _agreed(first: Slots, second: Slots) -> Slots:
    """`first` with the hyperparameters and power in which both agree; None where they differ."""
    values = dict(first.hyperparameters)
    for name, value in second.hyperparameters.items():
        if values.setdefault(name, value) != value:
            values[name] = None
    power = first.power if first.power == second.power else None
    return first._replace(hyperparameters=values, lazy=first.lazy or second.lazy, power=power)
