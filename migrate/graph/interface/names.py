"""Names for the tensors that iterators and queues deliver.

1. The name in the data set's parser, see `data_sets`.
2. Else the name in the scopes of feature columns, see `column_scopes`: a guess.
3. Where the two differ, where two tensors would have one name, and where a placeholder has it, a
   tensor keeps its name in the graph.
"""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, NamedTuple

from migrate.graph.attributes import dtypes
from migrate.graph.interface.column_scopes import guessed_names
from migrate.graph.interface.data_sets import ITERATING, parsed_names
from migrate.graph.metagraph import Edge, Graph


class Name(NamedTuple):
    """A feature's name, which may be guessed from the scopes of feature columns."""

    name: str
    guessed: bool


def delivered_names(graph: Graph) -> Dict[Edge, Name]:
    """Feature names by the tensors that deliver them; a sparse one by its serialized tensor."""
    parsed = parsed_names(graph)
    guessed: Dict[Edge, str] = {}
    placeholders: List[str] = []
    for node in graph.nodes.values():
        if node.op in ITERATING:
            count = len(dtypes(graph, node, "output_types"))
            guessed.update(guessed_names(graph, [(node.name, k) for k in range(count)]))
        elif node.op.startswith("Placeholder"):
            placeholders.append(node.name)
    names = {edge: Name(name, True) for edge, name in guessed.items()}
    for edge, name in parsed.items():
        if guessed.get(edge, name) == name:
            names[edge] = Name(name, False)
        else:
            # The parser and the scopes disagree: neither name is used.
            del names[edge]
    times = Counter([*(name.name for name in names.values()), *placeholders])
    return {edge: name for edge, name in names.items() if times[name.name] == 1}
