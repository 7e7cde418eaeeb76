"""Tables that a plug-in reads (`migrate.servers`), as those of any other writer."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple

import numpy

from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.servers.descriptions import Shard, Table
from migrate.servers.plugins import Plugin, plugins
from semisync.common.errors import BadInput

_VALUES = "rows"  # of a table, beside its slots


def server_tables(path: str) -> Optional[Dict[str, HashTable]]:
    """The tables that the plug-ins find at a path, by name; None if they find none.

    Raises:
        BadInput: a plug-in fails, or two of them have a table of one name.
    """
    found: Dict[str, HashTable] = {}
    for plugin in plugins():
        tables = plugin.ask("read_tables", path, about=path)
        for name, table in (tables or {}).items():
            if name in found:
                raise BadInput(f"{path}: two plug-ins have a table {name!r}")
            found[name] = _hash_table(plugin, name, table)
    return found or None


def _hash_table(plugin: Plugin, name: str, table: Table) -> HashTable:
    def of(column: str, called: str) -> HashTable:
        parts = tuple(ServerPart(plugin, shard, table.dim, column) for shard in table.shards)
        return HashTable(called, plugin.name, "int64", "float32", (table.dim,), parts)

    slots = {slot: of(slot, slot_name(name, slot)) for slot in table.slots}
    return dataclasses.replace(of(_VALUES, name), slots=slots)


def slot_name(table: str, slot: str) -> str:
    """The name of the slot <Optimizer>_<slot> of a table as a table of its own."""
    return f"{table}/{slot}"


@dataclasses.dataclass(frozen=True)
class ServerPart:
    """A column of a shard: the rows, or a slot."""

    plugin: Plugin
    shard: Shard
    dim: int
    column: str

    @property
    def stored(self) -> int:
        """See Part."""
        return self.shard.rows

    @property
    def place(self) -> str:
        """See Part."""
        return self.shard.path

    @property
    def files(self) -> Tuple[str, ...]:
        """See Part."""
        return (os.path.abspath(self.shard.path),)

    def has(self, column: str) -> bool:
        """See Part; a plug-in has neither."""
        return False

    def chunks(self, rows_per_chunk: int) -> Iterator[Rows]:
        """See Part; raises BadInput if the plug-in yields other arrays than it described."""
        total = 0
        for ids, rows, slots in self._read():
            keys, values = self._checked(ids, rows, _VALUES)
            if self.column != _VALUES:
                if self.column not in slots:
                    raise self._failed(f"a chunk lacks the slot {self.column!r}")
                _, values = self._checked(ids, slots[self.column], self.column)
            total += len(keys)
            for first in range(0, len(keys), rows_per_chunk):
                piece = slice(first, first + rows_per_chunk)
                yield Rows(keys[piece], values[piece])
        if total != self.shard.rows:
            raise self._failed(f"it gave {total} rows, and said that there are {self.shard.rows}")

    def _read(self) -> Iterator[Tuple[Any, Any, Mapping[str, Any]]]:
        try:
            yield from self.shard.read()
        except BadInput:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _checked(self, ids: Any, values: Any, column: str) -> Tuple[numpy.ndarray, numpy.ndarray]:
        keys, values = numpy.array(ids), numpy.array(values)  # copies, which are writable
        right = (
            keys.dtype == numpy.int64
            and values.dtype == numpy.float32
            and values.shape == (*keys.shape, self.dim)
            and keys.ndim == 1
        )
        if not right:
            raise self._failed(
                f"a chunk has {keys.dtype} ids {list(keys.shape)} and {values.dtype} "
                f"{column} {list(values.shape)}; expected int64 [n] and float32 "
                f"[n, {self.dim}]"
            )
        return keys, values

    def _failed(self, error: object) -> BadInput:
        return self.plugin.failed("read_tables", self.shard.path, error)
