"""The graph for batches of a fixed size, changed to take any number of rows.

1. The size of the batch is the first dimension of the inputs, or the number that `fixed_rows` finds
   in the reshapes of a graph whose inputs have any number.
2. From the inputs on, op by op, `rules` finds which dimensions are rows. Where a dimension that is
   a number must be the rows (as of zeros that are added to a batch), its origin is changed: a
   constant whose rows are all alike becomes one row, or is tiled; in the sizes that tf.fill,
   tf.tile and a reshape take, the number of the input's rows replaces the constant. It also
   replaces the divisor of a sum over the rows, as in the losses of tf.losses.
3. Nothing is changed if the rows are not independent: a constant has a different value for each row
   of the batch, rows are taken by position, or an op is not known and its numbers are ambiguous.
   `Freed.why` says so.
"""

from __future__ import annotations

from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from graph_rewrite.graph.ops import MERGE, NEXT, SWITCH
from migrate.graph.attributes import Shape, output_shape, shapes
from migrate.graph.interface.inputs import Inputs, is_input
from migrate.graph.interface.rows import fixed_rows
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.model.any_rows.made import Made, shape_attribute, shapes_attribute
from migrate.model.any_rows.rules import ELEMENTWISE, SAME, dims_of
from migrate.model.any_rows.sizes import At, Demand, Dim, Dims, Fixed, Rows, has_rows
from migrate.model.control.order import sort
from migrate.model.folding import Known
from migrate.model.inputs import cut_at_inputs
from semisync.common.errors import BadInput

_SIZES = {"Fill": 0, "Reshape": 1, "Slice": 2, "Tile": 1, "BroadcastTo": 1}  # where sizes are
_SIZES.update(dict.fromkeys(("RandomUniform", "RandomStandardNormal", "TruncatedNormal"), 0))
_DECLARED = {"TensorArrayReadV3", "TensorArrayGatherV3"}  # declared as large as what was written
_SIZED = {"Rank", "Shape", "ShapeN", "Size"}  # depend on a batch's size, not its values
_DIVIDING = {"Div", "DivNoNan", "RealDiv"}
_ROUNDING = 1e-6  # of one over a number of rows
_MOST = 2_000_000  # visits of nodes, restarted after each dimension that turns out to be rows


class Freed(NamedTuple):
    """The result of freeing the rows of a graph.

    Attributes:
        graph: for any number of rows, or as it was.
        size: of the batches that it was built for; None: it took any number.
        why: the reason why it is still fixed to that size; "": it is not.
        mixing: nodes that compute one value from all rows, if each output has a value per row.
    """

    graph: Graph
    size: Optional[int]
    why: str = ""
    mixing: FrozenSet[str] = frozenset()

    def unless_mixed(self, graph: Graph, computed: Iterable[Edge]) -> Freed:
        """This result, or the graph as it was if the rows are not independent.

        Args:
            graph: as it was.
            computed: the tensors that the model computes in the changed graph.
        """
        mixed = sorted(self.mixing.intersection(name for name, _ in computed))
        if not mixed or self.why:
            return self
        return Freed(graph, self.size, f"{mixed[0]!r} is computed of all rows of a batch")

    @property
    def note(self) -> str:
        """A sentence on the rows that the model takes; "": the graph took any number."""
        if self.size is None:
            return ""
        if not self.why:
            return f"the graph takes {self.size} rows at a time, and model.py any number"
        return (
            f"model.py takes {self.size} rows at a time, as the graph does, since {self.why}; "
            f"repeat a row where there are fewer, and drop what it gives"
        )


def free_rows(graph: Graph, outputs: Sequence[Edge]) -> Freed:
    """A graph whose outputs have as many rows as its inputs, where that is possible."""
    needed = {node.name for node in cut_at_inputs(graph).behind([name for name, _ in outputs])}
    entering = _entering(graph, needed)
    sizes = {shape[0] for shape in entering.values() if shape}
    size = next(iter(sizes - {None}), None)
    if size is None:
        size = fixed_rows(graph, outputs)
        if size is None or size < 2:  # the shape [1] is that of a loss, not of a row
            return Freed(graph, None)
    # Rows of a batch of one are no different from axes that broadcast.
    if size < 2 or len(sizes - {None}) > 1 or not sizes:
        return Freed(
            graph, size, "its inputs have several sizes" if size > 1 else "it is of one row"
        )
    try:
        freeing = _Freeing(graph, needed, entering, size, outputs)
        return Freed(freeing.graph(), size, mixing=freeing.mixing(outputs))
    except (BadInput, Fixed) as error:
        # The reason is a caveat, not an error: the graph as it was takes batches of its own size.
        return Freed(graph, size, str(error))


def _entering(graph: Graph, needed: Set[str]) -> Dict[Edge, Sequence[Optional[int]]]:
    """The shapes of the dense inputs that are read; text comes last."""
    inputs = Inputs(graph)
    found: Dict[Edge, Sequence[Optional[int]]] = {}
    text: Dict[Edge, Sequence[Optional[int]]] = {}
    for name in sorted(needed):
        for edge in graph.nodes[name].inputs:
            one = inputs.of(edge) if is_input(graph.nodes[edge[0]]) else None
            if one is not None and one.part is None and one.shape:
                (text if one.dtype == "string" else found)[edge] = one.shape
    return {**found, **text}


class _Freeing:
    def __init__(
        self,
        graph: Graph,
        needed: Set[str],
        entering: Dict[Edge, Sequence[Optional[int]]],
        size: int,
        outputs: Sequence[Edge],
    ) -> None:
        self._graph, self._size, self._entering = graph, size, entering
        self._known = Known(graph)
        self._inputs = {name for name, _ in entering}
        self._order = _sorted(cut_at_inputs(graph), outputs, needed)
        self._spread: Dict[Edge, int] = {}  # constants, and which of their dimensions is rows
        self._decided: Dict[str, Set[int]] = {}  # nodes, and which of the sizes they take are rows
        self._dims: Dict[Edge, Dims] = {}
        self._summed: Set[str] = set()  # nodes that depend on values of all rows
        self._mixing: Set[str] = set()  # those that make one value of all rows
        self._means: Set[str] = set()  # those that divide such a sum by the number of rows
        for _ in range(max(_MOST // max(len(self._order), 1), 1)):
            if self._pass():
                break
        else:
            raise Fixed("too many of its sizes are those of the batch")
        for edge in outputs:
            found = self._dims.get(edge)
            # A caller takes the results row by row.
            if has_rows(found) and not isinstance((found or (None,))[0], Rows):
                raise Fixed(f"the rows of {edge[0]!r} are not its first dimension")

    def _pass(self) -> bool:
        """Finds all dimensions; False where one turned out to be rows, which changes others."""
        self._dims = {edge: (Rows(1), *shape[1:]) for edge, shape in self._entering.items()}
        self._summed, self._mixing, self._means = set(), set(), set()
        for node in self._order:
            if (node.name, 0) in self._dims and node.name in self._inputs:
                continue
            at = self._at(node)
            try:
                found = dims_of(at)
            except Demand as demand:
                waiting = [(node.inputs[demand.place], demand.axis)]
                # To make one dimension the rows may require the same of the inputs that it comes
                # from.
                while waiting:
                    waiting += self._make_rows(*waiting.pop())
                return False
            for output, dims in enumerate(found):
                if sum(isinstance(dim, Rows) for dim in dims or ()) > 1:
                    raise at.fixed("rows meet each other")
                self._dims.setdefault((node.name, output), self._with_decided(node, dims))
            self._follow_sums(at, [self._dims[node.name, place] for place in range(len(found))])
        return True

    def _follow_sums(self, at: At, found: Sequence[Dims]) -> None:
        """Records values computed from all rows, and where these are divided by their number."""
        node, rows = at.node, any(map(has_rows, at.given))
        summed = any(name in self._summed for name, _ in node.inputs)
        # The node makes one value of all rows, or of such a value.
        if node.op not in _SIZED and (rows or summed) and not any(map(has_rows, found)):
            self._summed.add(node.name)
            if rows:
                self._mixing.add(node.name)
        # A sum over the rows may be divided by their number, which the graph then has as a
        # constant.
        for place, value in enumerate(at.values):
            if summed and not rows and value is not None and value.ndim == 0:
                if node.op in _DIVIDING and place == 1 and value == self._size:
                    self._means.add(node.name)
                elif node.op == "Mul" and abs(value * self._size - 1) < _ROUNDING:
                    raise at.fixed("a sum is multiplied by one over the size of the batch")

    def _at(self, node: Node) -> At:
        given = [self._given(node, edge) for edge in node.inputs]
        values = [self._known.value(edge) for edge in node.inputs]
        return At(self._graph, node, given, values, self._size)

    def _given(self, node: Node, edge: Edge) -> Dims:
        dims = self._dims.get(edge)
        if edge not in self._spread:
            return (
                dims
                if edge in self._dims
                else output_shape(self._graph, self._graph.nodes[edge[0]], edge[1])
            )
        value = self._known.value(edge)
        axis = self._spread[edge]
        # An elementwise op broadcasts one row; other ops get as many as there are.
        row: Dim = 1 if self._broadcasts(node, edge) else Rows(1)
        shape = () if value is None else value.shape
        return tuple(row if k == axis else one for k, one in enumerate(shape))

    def _broadcasts(self, node: Node, edge: Edge) -> bool:
        return node.op in ELEMENTWISE and not _is_range(self._known.value(edge), self._size)

    def _with_decided(self, node: Node, dims: Dims) -> Dims:
        decided = self._decided.get(node.name)
        if not decided or dims is None:
            return dims
        return tuple(
            Rows((dim or 0) // self._size) if axis in decided and isinstance(dim, int) else dim
            for axis, dim in enumerate(dims)
        )

    def _make_rows(self, edge: Edge, axis: int) -> List[Tuple[Edge, int]]:
        """Makes a dimension of `edge` the rows, at its origin; returns the (edge, axis) pairs for
        which the same must be done."""
        node = self._graph.nodes[edge[0]]
        value = self._known.value(edge)
        if value is not None:
            self._spread[edge] = self._checked(edge, value, axis)
            return []
        if node.op in _DECLARED or self._takes_sizes(node):
            decided = self._decided.setdefault(node.name, set())
            if axis in decided:
                raise Fixed(f"the size of {node.name!r} ({node.op}) is not the batch's alone")
            decided.add(axis)
            return []
        if node.op in MERGE:
            return [(one, axis) for one in self._entered(node)]
        if node.op in SAME or node.op in MERGE | SWITCH:
            return [(node.inputs[0], axis)]
        if node.op in ELEMENTWISE:
            return self._aligned(node, axis)
        place = self._known.value(node.inputs[1]) if node.op == "ExpandDims" else None
        rank = len(self._dims.get(edge) or ())
        if place is None or not rank:
            raise Fixed(f"the size of {node.name!r} ({node.op}) is the batch's")
        # An axis behind the inserted one is one further back than in the input.
        return [(node.inputs[0], axis - (int(place) % rank < axis))]

    def _takes_sizes(self, node: Node) -> bool:
        """Whether the sizes of a node's output are a constant."""
        return node.op in _SIZES and self._known.value(node.inputs[_SIZES[node.op]]) is not None

    def _entered(self, merge: Node) -> List[Edge]:
        """The inputs of a Merge that are not rows yet, without a loop's NextIteration."""
        given = [edge for edge in merge.inputs if self._graph.nodes[edge[0]].op not in NEXT]
        return [edge for edge in given if not has_rows(self._given(merge, edge))]

    def _aligned(self, node: Node, axis: int) -> List[Tuple[Edge, int]]:
        """The dimensions of an op's inputs that correspond to one of its output."""
        given = [self._given(node, edge) or () for edge in node.inputs]
        rank = max(map(len, given))
        found = [(edge, axis - rank + len(dims)) for edge, dims in zip(node.inputs, given)]
        sizes = [(one, dict(enumerate(dims)).get(one[1])) for one, dims in zip(found, given)]
        made = [one for one, size in sizes if size == self._size]
        if not made:
            raise Fixed(f"the size of {node.name!r} ({node.op}) is the batch's")
        return made

    def _checked(self, edge: Edge, value: np.ndarray, axis: int) -> int:
        # A constant is spread along one axis only, and `Made.constant` writes no text.
        if edge in self._spread or value.shape[axis] != self._size or value.dtype == object:
            raise Fixed(f"the constant {edge[0]!r} has the size of the batch")
        same = np.array_equal(value, np.repeat(value.take([0], axis), self._size, axis))
        if not same and not _is_range(value, self._size):
            raise Fixed(
                f"the constant {edge[0]!r} has other values for each of the {self._size} rows"
            )
        return axis

    def mixing(self, outputs: Sequence[Edge]) -> FrozenSet[str]:
        """The nodes of `Freed.mixing`."""
        if not all(has_rows(self._dims.get(edge)) for edge in outputs):
            return frozenset()
        return frozenset(self._mixing)

    def graph(self) -> Graph:
        """The graph, changed."""
        first = next(edge for edge, dims in self._entering.items() if edge in self._dims)
        made = Made(first)
        spread: Dict[Tuple[Edge, bool], Edge] = {}
        nodes: Dict[str, Node] = {}
        for node in self._order:
            inputs = [self._input(node, edge, made, spread) for edge in node.inputs]
            if node.op in _SIZES:
                place = _SIZES[node.op]
                inputs[place] = self._sized(node, inputs[place], made)
            if node.name in self._means:
                value = self._known.value(node.inputs[1])
                assert value is not None
                # The divisor was the batch's size; now it is the number of rows.
                inputs[1] = made.count(value.dtype.name)
            nodes[node.name] = self._shaped(node._replace(inputs=tuple(inputs)))
        for name in {edge[0] for edge in self._entering}:
            nodes[name] = self._shaped(self._graph.nodes[name])
        return self._graph.replace(nodes={**self._graph.nodes, **nodes, **made.nodes})

    def _input(
        self, node: Node, edge: Edge, made: Made, spread: Dict[Tuple[Edge, bool], Edge]
    ) -> Edge:
        if edge not in self._spread:
            return edge
        value, axis = self._known.value(edge), self._spread[edge]
        assert value is not None
        key = edge, self._broadcasts(node, edge)
        if key not in spread:
            if _is_range(value, self._size):
                spread[key] = made.numbers(value.dtype.name)
            else:
                one = made.constant(value.take([0], axis), edge[0] + "/one_row")
                if not key[1]:
                    one = made.tiled(one, value.ndim, axis, value.dtype.name)
                spread[key] = one
        return spread[key]

    def _sized(self, node: Node, edge: Edge, made: Made) -> Edge:
        """The sizes that a node takes, with the rows among them."""
        value, dims = self._known.value(edge), self._dims.get((node.name, 0))
        if value is None or not has_rows(dims) or dims is None:
            return edge
        told = [int(one) for one in value.reshape(-1)]
        rows = [axis for axis, dim in enumerate(dims) if isinstance(dim, Rows)]
        if node.op == "Tile":
            decided = self._decided.get(node.name, set())
            told_: List[Dim] = [
                Rows(n // self._size) if k in decided else n for k, n in enumerate(told)
            ]
            return made.vector(told_) if decided else edge
        if node.op == "Slice":
            return made.constant(
                np.array([-1 if k in rows else n for k, n in enumerate(told)], value.dtype)
            )
        # A size of -1 follows the number of rows by itself.
        if all(told[axis] < 0 for axis in rows):
            return edge
        if node.op == "Reshape" and len(rows) == 1:
            sizes = [-1 if axis in rows else dim for axis, dim in enumerate(dims)]
            if None not in sizes:
                return made.constant(np.array(sizes, value.dtype))
        return made.vector([told[k] if dim is None else dim for k, dim in enumerate(dims)])

    def _shaped(self, node: Node) -> Node:
        """The node with its known output shapes, now that the number of rows is free."""
        attrs = dict(node.attrs)
        for key in ("_output_shapes", "output_shapes", "shape"):
            told = shapes(self._graph, node, key) if key in attrs else []
            free = [self._free(node, output, shape) for output, shape in enumerate(told)]
            if free == told:
                continue
            attrs[key] = shape_attribute(free[0]) if key == "shape" else shapes_attribute(free)
        return node._replace(attrs=attrs)

    def _free(self, node: Node, output: int, shape: Shape) -> Shape:
        dims = self._dims.get((node.name, output))
        if dims is None or not has_rows(dims):
            return shape
        return tuple(None if isinstance(one, Rows) else one for one in dims)


def _sorted(graph: Graph, outputs: Sequence[Edge], needed: Set[str]) -> List[Node]:
    """The nodes, each after its inputs; a loop's NextIteration does not count as one."""

    def before(node: Node) -> List[str]:
        names = [name for name, _ in node.inputs]
        return [name for name in names if graph.nodes[name].op not in NEXT]

    return sort(graph, [*(name for name, _ in outputs), *sorted(needed)], before)


def _is_range(value: Optional[np.ndarray], size: int) -> bool:
    """Whether a constant is 0, 1, 2, ..., a number for each row."""
    if value is None or value.ndim != 1 or value.dtype.kind not in "iu":
        return False
    return np.array_equal(value, np.arange(size))
