"""Feature names, guessed from the scopes that feature columns open.

A column adds its ops in a scope of its own name, below the layer's:

    input_layer/C1_embedding/to_sparse_input/...      reads C1
    linear_model/age_bucketized_X_city/...            reads age and city, or either
    linear_model/tags_weighted_by_scores/...          reads tags and scores
    input_layer/NAMES_shared_embedding/C2_shared_embedding/...   reads C2

1. If a scope reads a tensor, or values computed from that tensor alone, then the tensor is one of
   the features that the scope names.
2. A name that only one tensor can have belongs to no other.
3. tf.data flattens a mapping by its sorted keys. If the names found by 1 and 2 are in that order,
   it decides the rest.

Source: tensorflow/python/feature_column/feature_column_v2.py, the columns' `name`
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Dict, List, Optional, Sequence, Set

from migrate.graph.interface.walks import GRADIENTS
from migrate.graph.lookups import readers_of
from migrate.graph.metagraph import Edge, Graph, Node

_LAYER = re.compile(
    r"(input_layer|linear_model|dense_features|sequence_input_layer|sequence_features)(_\d+)?"
)
_SHARED = re.compile(r"_shared_embedding(_\d+)?$")
_SUFFIXES = re.compile(r"(_embedding|_indicator|_bucketized)+$")
_SEVERAL = re.compile(r"_X_|_weighted_by_")
_NUMBER = re.compile(r"_\d+$")
_OF_COLUMNS = {"to_sparse_input", "weighted_sum", "Reshape/shape"}  # ops of columns, by their names
_LOOKUP = re.compile(r"(.*/)?embedding_lookup(_sparse)?(_\d+)?")  # TensorFlow's own scopes
_ENOUGH = 3  # names that must already be in order before the order decides others

_Sources = Dict[str, Optional[Edge]]


def guessed_names(graph: Graph, edges: Sequence[Edge]) -> Dict[Edge, str]:
    """The names of those of `edges`, the components of one structure, whose name is unambiguous."""
    nodes = [node for node in graph.nodes.values() if not GRADIENTS.search(node.name)]
    scopes = _columns(nodes)
    names = _possible(nodes, scopes, edges) if scopes else {}
    _keep_apart(names)
    known = [min(names[edge]) for edge in edges if len(names.get(edge, ())) == 1]
    if len(known) >= _ENOUGH and known == sorted(set(known)):
        _keep_in_order(names)
        _keep_apart(names)
    found = {edge: min(left) for edge, left in names.items() if len(left) == 1}
    times = Counter(found.values())
    # A name that two tensors would have is wrong for one of them.
    return {edge: name for edge, name in found.items() if times[name] == 1}


def _columns(nodes: Sequence[Node]) -> Set[str]:
    """The scopes of columns: below a layer of columns, with ops that only columns add."""
    inside: Dict[str, Set[str]] = {}
    for node in nodes:
        scope = _column_scope(node.name)
        if scope:
            local = node.name[len(scope) + 1 :]
            inside.setdefault(scope, set()).update((local, local.partition("/")[0]))
    return {
        scope
        for scope, names in inside.items()
        if not _LOOKUP.fullmatch(scope)
        and (names & _OF_COLUMNS or _SHARED.search(scope) or _SUFFIXES.search(scope))
    }


def _column_scope(node: str) -> str:
    """The scope of the column that a node belongs to, if it belongs to one; else empty."""
    parts = node.split("/")[:-1]
    layers = [place for place, part in enumerate(parts) if _LAYER.fullmatch(part)]
    # The column's scope is the one below the innermost layer of columns.
    end = layers[-1] + 2 if layers else len(parts) + 1
    if end <= len(parts) and _SHARED.search(parts[end - 1]):
        end += 1  # all of the table's columns, then the column itself
        if end > len(parts) or not _SHARED.search(parts[end - 1]):
            return ""
    return "/".join(parts[:end]) if end <= len(parts) else ""


def _possible(
    nodes: Sequence[Node], scopes: Set[str], edges: Sequence[Edge]
) -> Dict[Edge, Set[str]]:
    """The names that each tensor may have by the scopes that read it; tensors that no scope reads
    are left out."""
    sources = _sources(nodes, edges)
    delivered = set(edges)
    found: Dict[Edge, List[Set[str]]] = {}
    for node in nodes:
        scope = _column_scope(node.name)
        for edge in node.inputs if scope in scopes else ():
            source = edge if edge in delivered else sources.get(edge[0])
            if source is not None:
                found.setdefault(source, []).append(_features(scope, scopes))
    # A tensor that several columns read has a name that all of them contain.
    possible = {edge: set.intersection(*several) for edge, several in found.items()}
    return {edge: names for edge, names in possible.items() if names}


def _sources(nodes: Sequence[Node], edges: Sequence[Edge]) -> _Sources:
    """The one of `edges` that each node depends on; None where there are several."""
    readers = readers_of(nodes)
    sources: _Sources = {}
    for edge in edges:
        pending: List[Node] = [n for n in readers.get(edge[0], ()) if edge in n.inputs]
        while pending:
            node = pending.pop()
            known = sources.get(node.name, edge)
            # Reached by this tensor before, or by several: nothing new to pass on.
            if node.name in sources and known in (edge, None):
                continue
            sources[node.name] = edge if node.name not in sources else None
            pending += readers.get(node.name, ())
    return sources


def _features(scope: str, scopes: Set[str]) -> Set[str]:
    """The features that the scope of a column names.

    Args:
        scopes: of all columns; a scope that is opened again gets a number.
    """
    column = scope.rpartition("/")[2]
    if _SHARED.search(column):
        return {_SHARED.sub("", column)}
    first = _NUMBER.sub("", scope)
    columns = {column, first.rpartition("/")[2]} if first in scopes else {column}
    parts = {part for each in columns for part in _SEVERAL.split(_SUFFIXES.sub("", each))}
    return {_SUFFIXES.sub("", part) for part in parts}


def _keep_apart(names: Dict[Edge, Set[str]]) -> None:
    """Removes from all other tensors a name that one tensor must have."""
    changed = True
    while changed:
        changed = False
        taken = {min(found) for found in names.values() if len(found) == 1}
        for found in names.values():
            if len(found) > 1 and found & taken:
                found -= taken
                changed = True


def _keep_in_order(names: Dict[Edge, Set[str]]) -> None:
    """Keeps those names of each tensor that sort between a name of the previous and of the next."""
    edges = sorted(names)
    for after, order in ((True, edges), (False, edges[::-1])):
        bound: Optional[str] = None
        for edge in order:
            # In ascending order a name must be above the least name that the previous tensor may
            # have.
            fit = {
                name
                for name in names[edge]
                if bound is None or (name > bound if after else name < bound)
            }
            names[edge].intersection_update(fit)
            if fit:
                bound = min(fit) if after else max(fit)
