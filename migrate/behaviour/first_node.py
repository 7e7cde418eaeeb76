"""The first node in the order of the graph whose value differs, for one batch.

1. The source is written again with all values computed outside of branches and loops as its
   outputs, and gets the weights of the conversion. The same tensors are fetched from TensorFlow.
   The first that differs has inputs that agree: its op, or a variable that it reads, is at fault.
   A tensor that differs between two runs of TensorFlow is random, and left out.
2. A difference that does not reach an output does not count, such as the order of equal indices,
   which SparseReorder leaves open, before ScatterNd adds their values. The node that is reported is
   the first whose difference propagates to an output.
3. If all agree, the conversion's model.py itself differs from that source, or its constants do. It
   is traced while it runs: the first name of its `forward` that differs identifies the line.
"""

from __future__ import annotations

from typing import (
    Any,
    Collection,
    Dict,
    Iterable,
    Iterator,
    List,
    Mapping,
    Optional,
    Sequence,
    Set,
    Tuple,
)

import numpy as np

from graph_rewrite.graph.ops import VARIABLES
from migrate.behaviour.difference import apart
from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.in_torch import Converted, arrays, with_weights_of
from migrate.behaviour.largest import at_largest, of_rows
from migrate.behaviour.report import NodeDifference, Place
from migrate.behaviour.rows import Rows
from migrate.behaviour.subject import Subject
from migrate.graph.index import index_of
from migrate.graph.metagraph import Edge, Graph
from migrate.model.load import Written
from migrate.runtime.files import CONSTANTS
from migrate.scoring import torch_code
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge
from semisync.common.walks import reachable

_AT_A_TIME = 32  # tensors that TensorFlow is asked for at a time


def find_first(
    subject: Subject,
    written: Written,
    model: Converted,
    tensorflow: TensorFlowGraph,
    outputs: Collection[Edge],
    batch: Rows,
    given: Mapping[str, Any],
) -> Optional[NodeDifference]:
    """The node; None where none differs by itself.

    Args:
        written: the source of the conversion's outputs.
        outputs: the tensors that are compared.
    """
    computed = written.emitter.computed()
    edges = [edge for edge in computed if subject.has(edge)]
    theirs = _Fetched(tensorflow, batch, edges)
    compared = _by_node(subject, model.directory, theirs, batch, given)
    found = first_cause(subject.found.graph, compared, outputs)
    if found is not None:
        return _difference(subject, written, model.directory, set(computed), *found)
    # The source that was written again agrees at every node: model.py itself must differ.
    names = model.watch(given)
    values = (model.value(computed[edge].text, names) for edge in edges)
    found = first_cause(subject.found.graph, _compared(batch, theirs, values), outputs)
    if found is None:
        return None
    told = _difference(subject, written, model.directory, set(computed), *found)
    # The code is the conversion's own, so that its constants differ.
    if model.is_code_of(written.text):
        return told._replace(changed=[CONSTANTS])
    line = model.line(computed[found[0]].text, written.text)
    return told._replace(line=line)


def _by_node(
    subject: Subject,
    directory: str,
    theirs: "_Fetched",
    batch: Rows,
    given: Mapping[str, Any],
) -> Dict[Edge, Optional[Place]]:
    try:
        again = subject.write({of_edge(edge): edge for edge in theirs})
    except BadInput:
        return {}  # values inside a layer have no counterpart
    module = with_weights_of(directory, again, subject)
    return _compared(batch, theirs, arrays(torch_code.run(module, given)))


def _compared(
    batch: Rows, theirs: "_Fetched", values: Iterable[Optional[np.ndarray]]
) -> Dict[Edge, Optional[Place]]:
    """The place where each tensor differs; None if it does not. Tensors that one side lacks are
    left out, such as a value that model.py computes within a longer expression."""
    told = ((edge, theirs[edge], ours) for edge, ours in zip(theirs, values))
    return {
        edge: _differs(batch, tensorflows, ours)
        for edge, tensorflows, ours in told
        if tensorflows is not None and ours is not None
    }


def first_cause(
    graph: Graph, compared: Mapping[Edge, Optional[Place]], outputs: Collection[Edge]
) -> Optional[Tuple[Edge, Place]]:
    """The first difference that propagates to an output, from one tensor that differs to the next.

    Args:
        compared: where each differs, in the order of the source; a tensor not among them differs if
            one of its inputs does.
    """
    uses = index_of(graph).uses
    known, ends = {name for name, _ in compared}, {name for name, _ in outputs}
    different = [(edge, place) for edge, place in compared.items() if place is not None]
    lasting: Set[str] = set()

    def goes_on(edge: Edge) -> bool:
        def onwards(name: str) -> List[str]:
            return [] if name in known else [use.node.name for use in uses(name)]

        # Nodes that were not compared are passed; a compared one counts if its own difference
        # lasts.
        after = [use.node.name for use in uses(edge[0]) if use.output == edge[1]]
        reached = reachable(after, onwards)
        ended = (name in lasting or (name in ends and name not in known) for name in reached)
        return any(ended) or edge in outputs

    # Backwards: whether a difference lasts depends on those after it.
    for edge, _ in reversed(different):
        if goes_on(edge):
            lasting.add(edge[0])
    return next((one for one in different if one[0][0] in lasting), None)


def _differs(batch: Rows, theirs: np.ndarray, ours: np.ndarray) -> Optional[Place]:
    """The place of an intermediate value's largest difference; None where there is none."""
    if theirs.shape != ours.shape:
        shapes = [f"the shape {list(array.shape)}" for array in (theirs, ours)]
        return Place(batch.file, None, (), *shapes)
    theirs, ours = of_rows(batch, theirs), of_rows(batch, ours)
    found = apart(theirs, ours, on_the_way=True)
    if not found.beyond.any():
        return None
    return at_largest(batch, np.where(found.beyond, found.absolute, -1.0), theirs, ours)


def _difference(
    subject: Subject,
    written: Written,
    directory: str,
    computed: Set[Edge],
    edge: Edge,
    at: Place,
) -> NodeDifference:
    """The report on a node: the variables that it reads, and which of them differ."""
    nodes = _own_variables(subject, computed, edge)
    own = [written.by_node[node] for node in nodes if node in written.by_node]
    module = with_weights_of(directory, written, subject)
    state = module.state_dict()
    changed = {
        one.variable
        for one in own
        if not np.array_equal(state[one.attribute].numpy(), one.read(subject.checkpoint))
    }
    node = subject.found.graph.nodes[edge[0]]
    names = sorted({one.variable for one in own})
    return NodeDifference(of_edge(edge), node.op, at, names, sorted(changed))


def _own_variables(subject: Subject, computed: Set[Edge], edge: Edge) -> List[str]:
    """The variable nodes that a node reads, not through other compared nodes."""
    nodes = subject.found.graph.nodes

    def before(name: str) -> List[str]:
        inputs = (one for one in nodes[name].inputs if one not in computed)
        return [one for one, _ in inputs if one in nodes]

    return [name for name in reachable([edge[0]], before) if nodes[name].op in VARIABLES]


class _Fetched(Dict[Edge, Optional[np.ndarray]]):
    """The values of tensors in TensorFlow, fetched in groups, in order; None if they are random."""

    def __init__(self, tensorflow: TensorFlowGraph, batch: Rows, edges: Sequence[Edge]) -> None:
        super().__init__()
        self._tensorflow, self._batch, self._edges = tensorflow, batch, list(edges)

    def __iter__(self) -> Iterator[Edge]:
        return iter(self._edges)

    def __missing__(self, edge: Edge) -> Optional[np.ndarray]:
        first = self._edges.index(edge)
        asked = self._edges[first : first + _AT_A_TIME]
        once, again = self._values(asked), self._values(asked)
        # Only one group is kept: the values of all tensors may not fit into memory.
        self.clear()
        for one, value, other in zip(asked, once, again):
            same = value.shape == other.shape and not apart(value, other, True).beyond.any()
            self[one] = value if same else None
        return self[edge]

    def _values(self, edges: Sequence[Edge]) -> List[np.ndarray]:
        names = [of_edge(one) for one in edges]
        return self._tensorflow.fetch(self._batch.size, self._batch.features, names)
