"""The use of each raw feature, as data: the content of features.json.

inputs     by name, the entries of INPUTS in model.py
lookups    a table, the steps to its ids, their pooling
one_hots   the same where ids become vectors of 0 and 1, or of their weights
computed   any other use of features, as model.py writes it; names: the definitions of the
           names in it
"""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, Mapping, Optional, Set, Tuple

from migrate.graph.interface.inputs import Input
from migrate.graph.metagraph import Edge, Node
from migrate.model.embeddings.lookups import Lookup
from migrate.model.emitter import Emitter
from migrate.model.features.chains import Chains, Steps, Unknown
from migrate.model.features.indicators import find_weighted_one_hot
from migrate.model.layers.layer import SAME
from migrate.model.lookup_tables import Tables
from migrate.model.parameters import Parameters
from migrate.model.source.statements import Assign, names_in
from semisync.common.tensor_names import of_edge
from semisync.common.walks import reachable

SCHEMA = "semisync.features/1"
_SIZES = {"OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"}  # read no values
_MOST_LETTERS = 1 << 16  # of all expressions, each of which repeats those that it is computed from
# Names that are replaced by their expressions at most, and the length from which on none is.
_MAX_EXPANDED, _MAX_LENGTH = 50, 300


def describe(emitter: Emitter, parameters: Parameters, tables: Tables) -> Dict[str, Any]:
    """Describes a model whose statements are not rendered yet."""
    return _Description(emitter, parameters, tables).content()


class _Description:
    """The parts of the content."""

    def __init__(self, emitter: Emitter, parameters: Parameters, tables: Tables) -> None:
        self._emitter, self._parameters = emitter, parameters
        self._chains = Chains(emitter.subject, emitter.features, tables)
        self._ends: Set[str] = set()
        self._inside: Dict[str, Tuple[str, ...]] = {}  # the nodes of a use, by the one it ends at
        given = {emitter.value(edge).text for edge in emitter.inputs}
        self._left = _MOST_LETTERS
        self._texts = {
            target: statement.text if len(statement.targets) == 1 else f"({statement.text})[{k}]"
            for statement in emitter.block.statements
            if isinstance(statement, Assign)
            for k, target in enumerate(statement.targets)
            if target not in given
        }
        self._readers: Dict[Edge, List[Node]] = {}
        for node in emitter.regions.order:
            for edge in emitter.regions.read_by(node) if node.op not in SAME else ():
                self._readers.setdefault(emitter.subject.beyond(edge), []).append(node)

    def content(self) -> Dict[str, Any]:
        computed: List[Dict[str, Any]] = []
        found: Dict[str, List[Dict[str, Any]]] = {"lookups": [], "one_hots": []}
        for kind, end, given in self._uses():
            try:
                found[kind].append({**given, **self._steps(end)})
            except Unknown:
                computed.append({**given, **self._expression(end.given)})
        computed += list(self._others())
        return {"schema": SCHEMA, "inputs": self._inputs(), **found, "computed": computed}

    def _uses(self) -> Iterator[tuple]:
        """(kind, Lookup, its description) of each look-up and each OneHot."""
        for group in self._emitter.groups:
            for lookup in group.lookups.values():
                self._ends.add(lookup.node)
                name = self._parameters.saved_name(lookup.parts[0])
                tensor = of_edge(lookup.ids)
                said = {"table": name, "pooling": lookup.combiner, "tensor": tensor}
                yield "lookups", lookup, said
        for node in self._emitter.regions.order:
            depth = self._emitter.subject.constant(node.inputs[1]) if node.op == "OneHot" else None
            if depth is not None:
                self._ends.add(node.name)
                ids = node.inputs[0]
                one_hot = {"depth": int(depth), "tensor": of_edge(ids)}
                yield "one_hots", Lookup(node.name, (), 1, ids), one_hot
            weighted = find_weighted_one_hot(self._emitter.subject, node)
            if weighted is not None:
                self._ends.add(node.name)
                one_hot = {"depth": weighted.depth, "tensor": of_edge(weighted.ids)}
                one_hot["keep"] = ["ids >= 0"]
                self._inside[node.name] = weighted.nodes
                found = Lookup(node.name, (), 1, weighted.ids, weights=weighted.weights)
                yield "one_hots", found, one_hot

    def _steps(self, lookup: Lookup) -> Dict[str, Any]:
        ids = self._chains.steps(lookup.ids)
        said: Dict[str, Any] = {"ids": _without_keeps(ids)}
        if lookup.weights is not None:
            weights = self._chains.steps(lookup.weights)
            if _keeps(weights) != _keeps(ids):
                raise Unknown(lookup.node)
            said["weights"] = _without_keeps(weights)
        for place, step in enumerate(ids):
            if step["op"] == "keep":
                # The condition must be on the look-up's own ids, as they are at this step, or on
                # its weights.
                of_ids = step["where"] == "ids >= 0"
                of = _without_keeps(ids[:place]) if of_ids else said.get("weights")
                if _without_keeps(step["of"]) != of:
                    raise Unknown(lookup.node)
                said.setdefault("keep", []).append(step["where"])
        self._chains.conditions.update(self._inside.get(lookup.node, ()))
        return said

    def _others(self) -> Iterator[Dict[str, Any]]:
        """The readers of features, or of the results of steps, that are not steps."""
        beyond, visited = self._emitter.subject.beyond, self._chains.visited
        pending = [edge for edge, one in self._emitter.inputs.items() if one.part in (None, 1)]
        pending += sorted(visited)
        known = {edge[0] for edge in visited} | self._chains.conditions | self._ends
        for edge in dict.fromkeys(map(beyond, pending)):
            for node in self._readers.get(edge, ()):
                if node.name not in known and node.op not in _SIZES:
                    known.add(node.name)
                    yield self._expression((node.name, 0))

    def _expression(self, edge: Edge) -> Dict[str, Any]:
        """The entry of a tensor, or of the last value computed from it and constants alone."""
        found = edge
        for _ in range(len(self._texts)):
            readers = self._readers.get(edge, [])
            if len(readers) != 1 or readers[0].name in self._ends:
                break
            edge = (readers[0].name, 0)
            if not self._alone(readers[0], found) or self._text(edge) is None:
                break
            found = edge
        # Past the limit only the tensor is named.
        if self._left < 0:
            return {"tensor": of_edge(found)}
        text = self._text(found) or self._emitter.value(found).text
        expression = _expanded(text, self._texts)
        said = {"tensor": of_edge(found), "reads": self._reads(found), "expression": expression}
        names = self._names(expression)
        self._left -= len(expression) + sum(map(len, names.values()))
        return {**said, "names": names} if names else said

    def _names(self, expression: str) -> Dict[str, str]:
        """The definitions of the names in an expression other than inputs, in order of use."""
        wanted = names_in(expression)
        # Backwards: a definition reads only names that are assigned before it.
        for name, text in reversed(self._texts.items()):
            if name in wanted:
                wanted |= names_in(text)
        return {name: text for name, text in self._texts.items() if name in wanted}

    def _text(self, edge: Edge) -> Optional[str]:
        return self._texts.get(self._emitter.value(edge).text)

    def _alone(self, node: Node, edge: Edge) -> bool:
        subject = self._emitter.subject
        others = [other for other in node.inputs if subject.beyond(other) != edge]
        return all(subject.constant(other) is not None for other in others)

    def _reads(self, edge: Edge) -> List[str]:
        graph, inputs = self._emitter.subject.graph, self._emitter.inputs
        found = reachable([edge], lambda at: () if at in inputs else graph.nodes[at[0]].inputs)
        return sorted({inputs[at].name for at in found if at in inputs})

    def _inputs(self) -> Dict[str, Any]:
        parts: Dict[str, Input] = {}
        for one in self._emitter.inputs.values():
            if one.part in (None, 1) or one.name not in parts:
                parts[one.name] = one
        return {name: _described(one) for name, one in parts.items()}


def _described(one: Input) -> Dict[str, Any]:
    shape: Optional[List[Any]] = None if one.shape is None else list(one.shape)
    return {
        "dtype": one.dtype,
        "shape": shape if one.part is None else None,
        "sparse": one.part is not None,
        "tensors": list(one.tensors),
        "guessed": one.guessed,
    }


def _keeps(steps: Steps) -> Steps:
    return [step for step in steps if step["op"] == "keep"]


def _without_keeps(steps: Steps) -> Steps:
    return [step for step in steps if step["op"] != "keep"]


def _expanded(text: str, texts: Mapping[str, str]) -> str:
    """An expression, with the names that it reads replaced by their own expressions."""
    tree: ast.AST = ast.parse(text, mode="eval")
    for _ in range(_MAX_EXPANDED):
        names = (node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        name = next((name for name in names if name in texts), None)
        if name is None or len(ast.unparse(tree)) > _MAX_LENGTH:
            break
        tree = _Put(name, texts[name]).visit(tree)
    return ast.unparse(tree)


class _Put(ast.NodeTransformer):
    """Replaces a name by an expression."""

    def __init__(self, name: str, text: str) -> None:
        self._name, self._text = name, text

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.parse(self._text, mode="eval").body if node.id == self._name else node
