"""The features that a data set or a queue delivers, by the names under which they were parsed.

tf.data and queues deliver flat lists of tensors; only the parser knows the names:

    IteratorGetNext:k  <-  the data set that its iterator is made of, backwards
        Map            the function's k-th result, back to a parser in it, or to an argument, which
                       is a component of the data set before
        ParseExample   the k-th of the sorted keys
        Zip            the components of each data set in turn
        Interleave     the data set that the function returns
        Batch, ...     the k-th component of the data set before
    QueueDequeue:k     the k-th tensor of each enqueue op of the queue, back to a parser

In between a tensor may be reshaped or cast, and a sparse one serialized. Any other tensor has no
name.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Mapping, Optional

from graph_rewrite.graph.ops import CAST, PASS, SHAPE
from migrate.graph.attributes import dtypes, function, strings
from migrate.graph.functions import Function, read_functions
from migrate.graph.interface.examples import parsed_keys
from migrate.graph.metagraph import Edge, Graph, Node

ITERATING = {"IteratorGetNext", "IteratorGetNextAsOptional", "IteratorGetNextSync"}
_ITERATORS = {"Iterator", "IteratorV2"}
_DEQUEUING = re.compile(r"Queue\w*Dequeue\w*")
_ENQUEUING = re.compile(r"Queue\w*Enqueue\w*")
_DATA_SET = re.compile(r"(?:Experimental)?(\w+?)Dataset(?:V\d+)?")
_MAPPING = {"Map", "MapAndBatch", "ParallelMap"}
_RETURNING = {"FlatMap", "Interleave", "ParallelInterleave"}
_SAME = """
    AssertCardinality AutoShard Batch Cache Filter MaxIntraOpParallelism Model Optimize
    Options PaddedBatch Prefetch PrivateThreadPool Rebatch Repeat Shard Shuffle ShuffleAndRepeat
    Skip Take TakeWhile Unbatch
"""
_VIEWS = PASS | CAST | SHAPE | {"DeserializeSparse"}
_SERIALIZED = {"SerializeManySparse", "SerializeSparse"}
_MAX_STEPS = 64  # a chain of data sets or of views is short; a damaged graph may be circular
_MAX_DATA_SETS = 1 << 16  # damaged graphs zip one with itself over and over

Names = List[Optional[str]]


def parsed_names(graph: Graph) -> Dict[Edge, str]:
    """The feature names of the tensors that iterators and queues deliver."""
    search = _Search(graph)
    found: Dict[Edge, str] = {}
    for node in graph.nodes.values():
        if node.op in ITERATING:
            names = _agreed(search.of_iterator(node))
        elif _DEQUEUING.fullmatch(node.op):
            names = _agreed(search.of_queue(node))
        else:
            continue
        found.update(((node.name, k), name) for k, name in enumerate(names) if name is not None)
    return found


def _agreed(several: Iterator[Names]) -> Names:
    """The names of the components on which all sources of an iterator or a queue agree."""
    found = list(several)
    lengths = {len(names) for names in found}
    if len(lengths) != 1:
        return []
    return [names[0] if len(set(names)) == 1 else None for names in zip(*found)]


class _Search:
    """A search in a graph and the functions of its library.

    A place is the graph itself or a function, whose arguments have the names in `bound`.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: Optional[Mapping[str, Function]] = None
        self._left = _MAX_DATA_SETS

    def of_iterator(self, node: Node) -> Iterator[Names]:
        iterator = self._origin(node.inputs[0]) if node.inputs else None
        if iterator is None:
            return
        if iterator.op == "OneShotIterator":
            yield self._of_function(self._function(iterator, "dataset_factory"), {})
        elif iterator.op in _ITERATORS:
            for maker in self._graph.nodes.values():
                if maker.op == "MakeIterator" and self._origin(maker.inputs[1]) == iterator:
                    yield self._of_data_set(self._graph, maker.inputs[0], {})

    def of_queue(self, node: Node) -> Iterator[Names]:
        queue = self._origin(node.inputs[0]) if node.inputs else None
        for other in self._graph.nodes.values() if queue is not None else ():
            if _ENQUEUING.fullmatch(other.op) and self._origin(other.inputs[0]) == queue:
                yield [self._of_tensor(self._graph, edge, {}) for edge in other.inputs[1:]]

    def _of_data_set(
        self, place: Graph, edge: Edge, bound: Mapping[str, Optional[str]], steps: int = _MAX_STEPS
    ) -> Names:
        """The names of the components of a data set; none where the data set is not known."""
        node = place.nodes.get(edge[0])
        named = _DATA_SET.fullmatch(node.op) if node is not None else None
        self._left -= 1
        # Both bounds end in "no names", which is no error: the features keep the tensors' names.
        if node is None or named is None or not steps or self._left < 0:
            return []
        kind = named[1]
        if kind == "ParseExample":
            return _sorted_keys(place, node)
        if kind == "Zip":
            parts = [self._of_data_set(place, each, bound, steps - 1) for each in node.inputs]
            self._left -= sum(map(len, parts))
            return [name for part in parts for name in part] if all(parts) else []
        before = self._of_data_set(place, node.inputs[0], bound, steps - 1) if node.inputs else []
        if kind in _SAME.split():
            return before
        if kind in _MAPPING:
            return self._of_map(self._function(node, "f"), before)
        if kind in _RETURNING:
            return self._of_function(self._function(node, "f"), {}, steps - 1)
        types = dtypes(place, node, "output_types") or dtypes(place, node, "Toutput_types")
        return [None] * len(types)

    def _of_function(
        self,
        found: Optional[Function],
        bound: Mapping[str, Optional[str]],
        steps: int = _MAX_STEPS,
    ) -> Names:
        """The names of the components of the data set that a function returns."""
        if found is None or len(found.results) != 1:
            return []
        place = self._graph.replace(nodes=found.nodes)
        return self._of_data_set(place, place.beyond(found.results[0], _VIEWS), bound, steps)

    def _of_map(self, found: Optional[Function], before: Names) -> Names:
        if found is None:
            return []
        place = self._graph.replace(nodes=found.nodes)
        # An argument without a component of its own has no name.
        bound = dict.fromkeys(found.arguments)
        bound.update(zip(found.arguments, before))
        return [self._of_tensor(place, edge, bound) for edge in found.results]

    def _of_tensor(
        self, place: Graph, edge: Edge, bound: Mapping[str, Optional[str]]
    ) -> Optional[str]:
        for _ in range(_MAX_STEPS):
            if edge[0] in bound:
                return bound[edge[0]]
            node = place.nodes.get(edge[0])
            if node is None:
                return None
            if node.op in _SERIALIZED and len(node.inputs) == 3:
                edge = node.inputs[1]
            elif node.op in _VIEWS and node.inputs:
                edge = node.inputs[0]
            else:
                keys = parsed_keys(place, node)
                return keys[edge[1]] if edge[1] < len(keys) else None
        return None

    def _origin(self, edge: Edge) -> Optional[Node]:
        return self._graph.nodes.get(self._graph.beyond(edge, PASS)[0])

    def _function(self, node: Node, attribute: str) -> Optional[Function]:
        if self._known is None:
            self._known = read_functions(self._graph)
        return self._known.get(function(self._graph, node, attribute))


def _sorted_keys(place: Graph, node: Node) -> Names:
    kinds = ("sparse_keys", "dense_keys", "ragged_keys")
    return [*sorted(key for kind in kinds for key in strings(place, node, kind))]
