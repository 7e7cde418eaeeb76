"""A plug-in's description of its files."""

from __future__ import annotations

from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence, Tuple


class Shard(NamedTuple):
    """One file of a table.

    Attributes:
        path: of the file.
        rows: how many it has.
        read: called for each reading: yields chunks of (ids int64 [n], rows float32 [n, dim],
            {slot: float32 [n, dim]}) with as many rows together.
    """

    path: str
    rows: int
    read: Callable[[], Iterable[Tuple[Any, Any, Mapping[str, Any]]]]


class Table(NamedTuple):
    """A table by raw id.

    Attributes:
        dim: of a row.
        shards: in which each id stands once.
        slots: the optimizer's, named <Optimizer>_<slot> by TensorFlow's names,
            "Adagrad_accumulator"; others keep their names.
    """

    dim: int
    shards: Sequence[Shard]
    slots: Sequence[str] = ()
