"""The tensors of a torch Distributed Checkpoint that training saved after a conversion.

The manifest of the conversion lists the tensors, `keys` their keys. Values are taken as they
are, whatever the sharding they were saved under. A variable that is not found is refused: the
original's value would be older than the training. So is a slot, unless there are none at all
of tables, or none of dense variables: these are then the original's, as are step counters that
training did not save.
"""

from __future__ import annotations

import os
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from migrate.manifest.manifest import Manifest, Written
from migrate.manifest.state_names import owner
from migrate.targets import digests
from migrate.targets.reading.dcp import read_dcp
from migrate.to_tensorflow.dcp_rows import joined
from migrate.to_tensorflow.hash_table import find_rows, leads_back
from migrate.to_tensorflow.held import Held, Side
from migrate.to_tensorflow.in_directory import intact_manifest, reasons
from migrate.to_tensorflow.keys import Keys, Place, given_place, read_variables, table_names
from semisync.common.errors import BadInput, UsageError


def side_of_dcp(
    directory: str, converted: str, names: Mapping[str, Optional[str]]
) -> Tuple[Side, Manifest]:
    """The tensors in the DCP in `directory` of the checkpoint from which `converted` was made.

    Args:
        names: as of `migrate.write_checkpoint`.

    Raises:
        BadInput: it is not one, its shapes are those of another model, or the manifest of
            `converted` is not as it was written.
        UsageError: `names` has unknown names.
    """
    manifest = intact_manifest(converted)
    return _Finding(directory, converted, manifest, names).side(), manifest


class _Finding:
    """The search for the variables of one manifest among the keys of a DCP."""

    def __init__(
        self, directory: str, converted: str, manifest: Manifest, names: Mapping[str, Optional[str]]
    ) -> None:
        self._directory, self._manifest, self._names = directory, manifest, names
        self._converted = converted
        digests.check(directory)
        self._saved = read_dcp(directory)
        self._keys = Keys(self._saved, directory)
        self._variables = read_variables(os.fspath(converted))
        attributes = [place.name for of in self._variables.values() for place in of]
        self._prefix = self._keys.common_prefix(attributes)
        self._tables = {table.fqn: table for table in manifest.tables}
        self._places: Dict[str, List[Place]] = {}  # of weights and dense variables, by fqn
        self._held: Dict[str, Held] = {}
        self._lacking = reasons(manifest)
        self._refused: Dict[str, str] = {}
        self._unsaved: List[str] = []  # counters

    def side(self) -> Side:
        """The tensors found."""
        self._check_names()
        every = [one for one in self._manifest.variables() if not self._is_static(one)]
        for written in every:
            if written.role in ("table", "dense"):
                self._find_variable(written)
        self._take_slots("tables", [one for one in every if one.role == "table slot"])
        self._take_slots("dense variables", [one for one in every if one.role == "dense slot"])
        for written in every:
            if written.role == "scalar":
                self._find_counter(written)
        self._find_hash_tables()
        manifest = self._manifest
        scalars = {k: v for k, v in manifest.scalars.items() if k not in self._held}
        lacking = {k: v for k, v in self._lacking.items() if k not in self._held}
        notes = []
        if self._unsaved:
            listed = ", ".join(self._unsaved)
            notes.append(f"{listed} are as before the training, which did not save them")
        return Side(self._directory, self._held, lacking, self._refused, scalars, notes)

    def _check_names(self) -> None:
        known = {
            one.source for one in self._manifest.variables() if one.role in ("dense", "scalar")
        }
        strange = sorted(set(self._names) - known)
        if strange:
            raise UsageError(
                f"names has {strange[0]!r}, which is not a dense variable of the conversion"
            )

    def _is_static(self, written: Written) -> bool:
        table = self._tables.get(written.fqn)
        return table is not None and table.static is not None

    def _find_variable(self, written: Written) -> None:
        source = written.source
        # None asks for the original's value.
        given = source in self._names and self._names[source] is None
        places = [] if given else self._variable_places(written)
        if places:
            self._places[written.fqn] = places
            self._take(written, places)
        elif given or (self._variables and source not in self._variables):
            self._lacking[source] = "the model does not have it"
        else:
            self._refused[source] = (
                "it has no tensor of that variable; say its name there in Python, or None for the "
                f"original's value: migrate.write_checkpoint(..., names={{{source!r}: 'KEY'}})"
            )

    def _variable_places(self, written: Written) -> List[Place]:
        source = written.source
        given = self._names.get(source)
        if given is not None:
            return [given_place(source, given, self._keys, len(written.shape))]
        listed = [
            place._replace(key=self._prefix + place.name)
            for place in self._variables.get(source, [])
            if self._prefix is not None
        ]
        if listed:
            return listed
        table = self._tables.get(written.fqn)
        candidates = list(table_names(table.name)) if table is not None else []
        for name in [*candidates, written.fqn]:
            key = self._keys.find(name)
            if key is not None:
                return [Place(key, name)]
        return []

    def _slot_places(self, written: Written, prefix: Optional[str]) -> List[Place]:
        """The place of the slot for each part of its variable; empty unless all are there.

        Args:
            prefix: of their keys, where it is known.
        """
        owner, states = self._owner(written)
        own = self._keys.find(written.fqn)
        if own is not None:
            return [Place(own, written.fqn)]
        places = []
        for place in self._places.get(owner, []):
            names = [f"{place.name}.{state}" for state in states]
            found = [self._keys.find(name, prefix) for name in names]
            keys = [key for key in found if key is not None]
            if not keys:
                return []
            places.append(place._replace(key=keys[0]))
        return places

    def _slot_prefix(self, slots: Sequence[Written]) -> Optional[str]:
        """The prefix of the keys of a model's slots: by its end alone, a key may be of several."""
        names = []
        for written in slots:
            owner, states = self._owner(written)
            # torch.optim's word: FBGEMM's has the table's name in it.
            names += [f"{place.name}.{states[-1]}" for place in self._places.get(owner, [])]
        return self._keys.common_prefix(names)

    def _owner(self, written: Written) -> Tuple[str, List[str]]:
        """(fqn of the variable, names that the slot may have)"""
        variable, state, in_torch = owner(self._manifest, written)
        return variable, list(dict.fromkeys([state, in_torch]))

    def _take_slots(self, kind: str, slots: Sequence[Written]) -> None:
        """Takes the slots of tables, or of dense variables: all of them, or none."""
        prefix = self._slot_prefix(slots) if self._prefix is not None else None
        found = [(written, self._slot_places(written, prefix)) for written in slots]
        if not any(places for _, places in found):
            return
        for written, places in found:
            if not places and self._owner(written)[0] not in self._places:
                continue  # the variable is not there either
            if not places:
                self._refused[written.source] = (
                    f"it has the state of other {kind}, but not this one; save all of the "
                    "optimizer's state, or none"
                )
            elif written.has_values:
                self._take(written, places)
            else:
                self._refused[written.source] = (
                    "its accumulator has one value a row (row-wise), which does not tell those of "
                    "TensorFlow's, one a value"
                )

    def _find_counter(self, written: Written) -> None:
        # As `semisync train` names it; as the state dict of `build_training`'s optimizer nests it.
        names = [f"counter.{written.source}", f"counters.{written.source}", written.fqn]
        found = [key for key in map(self._keys.find, names) if key is not None]
        listed = self._variable_places(written) if not found else [Place(found[0], found[0])]
        if listed:
            self._take(written, listed)
        else:
            self._lacking[written.source] = "training did not save it"
            self._unsaved.append(written.source)

    def _take(self, written: Written, places: Sequence[Place]) -> None:
        """Holds the values at `places` as their tensor of the checkpoint."""
        held = joined(places, self._saved, written.partition_strategy == "mod")
        if list(held.shape) != written.shape:
            raise BadInput(
                f"{self._directory} has {places[0].key!r}, {list(held.shape)}, for "
                f"{written.source!r}, which is {written.shape}; it is of another model"
            )
        self._held[written.source] = held

    def _find_hash_tables(self) -> None:
        for table in self._manifest.tables:
            if table.ids is None or table.static:
                continue
            if not leads_back(table):
                why = (
                    f"it belongs to a hash table ({table.ids.kind}) that is more than keys and "
                    "values, and what training made of its rows cannot be written back"
                )
                self._refused.update(dict.fromkeys(table.ids.tensors, why))
                continue
            found = find_rows(
                table, self._manifest, self._converted, self._keys, self._saved, self._directory
            )
            self._held.update(zip(table.ids.tensors, found))
