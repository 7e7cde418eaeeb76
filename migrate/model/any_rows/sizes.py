"""The dimensions of tensors, of which some are rows of the batch.

A dimension is a number, `Rows(k)` for k times the rows of the batch, or None where it is not known.
The shapes in the graph hold the numbers; they do not distinguish 128 rows from a layer of width
128, but the ops do. An op that is not known here is followed if its numbers leave no choice.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from migrate.graph.attributes import Shape, output_shape
from migrate.graph.metagraph import Graph, Node


class Rows(NamedTuple):
    """`times` the rows of the batch."""

    times: int


Dim = Union[int, Rows, None]
Dims = Optional[Tuple[Dim, ...]]


class Fixed(Exception):
    """The number of rows cannot be free, for the reason in the message."""


class Demand(Exception):
    """A dimension that looks like a number must be the batch's rows.

    Attributes:
        place, axis: the input of the node at hand, and its dimension.
    """

    def __init__(self, place: int, axis: int) -> None:
        super().__init__(place, axis)
        self.place, self.axis = place, axis


class At(NamedTuple):
    """A node whose outputs' dimensions are to be found.

    Attributes:
        given: the dimensions of each input.
        values: the value of each input that depends on constants alone; None for others.
        size: the number of rows in a batch.
    """

    graph: Graph
    node: Node
    given: Sequence[Dims]
    values: Sequence[Optional[np.ndarray]]
    size: int

    def static(self, output: int = 0) -> Shape:
        """The shape of an output that the graph states."""
        return output_shape(self.graph, self.node, output)

    def number(self, dim: Dim) -> Optional[int]:
        """A dimension in a batch of the graph's own size."""
        return dim.times * self.size if isinstance(dim, Rows) else dim

    def dims(self, place: int) -> Tuple[Dim, ...]:
        """The dimensions of an input.

        Raises:
            Fixed: it is not known how many there are.
        """
        found = self.given[place]
        if found is None:
            raise self.fixed("the number of its input's dimensions is not known")
        return found

    def integers(self, place: int) -> List[int]:
        """The values of an input, as integers.

        Raises:
            Fixed: they are computed, not constants.
        """
        value = self.values[place] if place < len(self.values) else None
        if value is None:
            raise self.fixed("it takes sizes or axes that are computed")
        return [int(one) for one in np.asarray(value).reshape(-1)]

    def fixed(self, why: str) -> Fixed:
        """An error about the node."""
        return Fixed(f"of {self.node.name!r} ({self.node.op}) {why}")


def has_rows(dims: Dims) -> bool:
    """Whether a dimension is the batch's rows."""
    return dims is not None and any(isinstance(dim, Rows) for dim in dims)
