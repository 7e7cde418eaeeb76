"""A graph as statements: each needed node once, in the block of its branch or loop.

1. `Regions` sorts the needed nodes and finds the branches and loops in which each one runs.
2. A layer that torch has a module for is recognised at its last node, see `layers`; nodes that only
   it needed are dropped.
3. A node becomes a Value. Nodes that pass on their input are that input's value; constants, and
   values that depend on constants alone, are computed here; variables are attributes of the module.
4. Any other node is an expression, `ops.registry.write`, assigned to a name in its block; an
   expression that is already there is not computed again. The first Merge of a tf.cond writes the
   `if` that holds its branches, the first Exit of a loop the loop.
"""

from __future__ import annotations

import itertools
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy

from graph_rewrite.graph.ops import EXIT, MERGE, SWITCH, VARIABLES
from migrate.graph.attributes import output_shape
from migrate.graph.interface.inputs import Input, Inputs
from migrate.graph.lookups import readers_of
from migrate.graph.metagraph import Edge, Graph, Node, explained
from migrate.graph.tensors import constant_array
from migrate.model.constants import Constants
from migrate.model.control.guards import NOWHERE, Region, left_from, loop_guard
from migrate.model.control.regions import Regions
from migrate.model.embeddings.collections import Collection, Group, ends, find_groups, names_of_ids
from migrate.model.folding import RANDOM, Known, fold
from migrate.model.inputs import cut_at_inputs, is_training_flag
from migrate.model.layers.finders import find_layers
from migrate.model.layers.layer import SAME, Cond, Layer, Modules, Subject
from migrate.model.local_names import LocalNames, only_input
from migrate.model.lookup_tables import TABLES, Tables
from migrate.model.ops import tensor_arrays
from migrate.model.ops.registry import DYNAMIC_OPS, Expression, write
from migrate.model.ops.types import kind_of, output_dtype
from migrate.model.ops.values import HOST, OBJECT, STRINGS, TENSOR, Call, Host, Many, Value
from migrate.model.parameters import Parameters
from migrate.model.sizes import Room, TooMuch
from migrate.model.source.names import local_name
from migrate.model.source.statements import (
    DYNAMIC,
    RAW,
    SIZES,
    TENSORS,
    Assign,
    Block,
    If,
    Statement,
    Until,
    While,
    assigned,
    drop_unread,
    unassigned,
)
from migrate.model.unchanged import find_unchanged
from semisync.common.errors import BadInput, UsageError

_TRAINS = "self.training"
_MOST_COMPUTED = 1 << 28  # values that an op computes from constants, each time that the model runs
_MOST_LETTERS = 1 << 23  # of all expressions together
_COMPARED = 64  # values of a constant that is compared by them, not by its name: shapes, bounds
_TO_PYTHON = re.compile(r"\.(item|tolist)\(\)")  # numbers that tensors hold


class Found(NamedTuple):
    """A call of a collection: the ids or bags of each feature, and the name of the result."""

    collection: Collection
    given: Dict[str, str]
    name: str


class Emitter:
    """Emits one method.

    Args:
        outputs: the tensors that the method returns.

    Attributes:
        block: its statements.
        inputs: the features that it reads, by the edge.
        layers: those that are recognised, by the node that each ends at.
        modules: the layers' modules: attribute -> the expression that makes it.
        tables: the lookup tables.
    """

    def __init__(
        self,
        graph: Graph,
        outputs: Sequence[Edge],
        parameters: Parameters,
        constants: Constants,
        tables: Tables,
    ) -> None:
        self._graph, self._parameters, self._constants = graph, parameters, constants
        self.tables, self.features = tables, Inputs(graph)
        self.regions = Regions(cut_at_inputs(graph), outputs)
        known = Known(graph)
        self.subject = Subject(
            graph,
            known,
            frozenset(name for name, _ in outputs),
            readers_of(self.regions.needed),
            _conds(self.regions),
            _kept(graph, self.regions),
            find_unchanged(graph, known, self.regions.needed),
            self.regions.rounds,
        )
        self.layers = find_layers(self.subject, self.regions.order)
        self._flags = {layer.flag for layer in self.layers.values()}
        kernels = {layer.kernel for layer in self.layers.values()}
        replaced: Dict[str, Tuple[Edge, ...]] = {
            name: (edge,) for name, edge in self.subject.unchanged.items()
        }
        replaced.update((name, layer.inputs) for name, layer in self.layers.items())
        # Layers first: `find_groups` counts the readers that are left once layers are single
        # expressions.
        self.regions.replace(replaced)
        self.groups = find_groups(self.subject, self.regions, parameters, kernels, self.features)
        self._lookups = ends(self.groups)
        self.regions.replace({**replaced, **{n: g.inputs for n, (g, _) in self._lookups.items()}})
        self._found: Dict[int, Found] = {}
        self._bags: Dict[Tuple[int, str], str] = {}
        self._edges = _edges(self.regions, outputs)
        trained = {name for name, layer in self.layers.items() if layer.trained}
        self._names = LocalNames(
            self.subject,
            self.regions,
            self.features,
            names_of_ids(self.groups),
            trained.union(self._lookups),
        )
        self._values: Dict[Edge, Value] = {}
        self._room = Room()
        self._letters = 0
        self._opened: Set[str] = set()
        self._first: Dict[Any, str] = {}
        self._blocks: Dict[Region, Block] = {NOWHERE: Block()}
        self.inputs: Dict[Edge, Input] = {}
        self.modules: Modules = {}
        for node in self.regions.order:
            with explained(graph, node):
                self._emit(node)
        self.outputs = [self.value(edge) for edge in outputs]
        self.block = self._blocks[NOWHERE]
        self._refuse_unassigned()
        drop_unread(self.block, [value.tensor for value in self.outputs])
        # An input that only dropped statements read is not an input of the module.
        read = set().union(*map(assigned, self.block.statements))
        self.inputs = {e: one for e, one in self.inputs.items() if self._values[e].text in read}

    def value(self, edge: Edge) -> Value:
        """The value of `edge`, whose node has been emitted."""
        # Variables, constants and nodes that pass on their input have no statement of their own.
        while edge not in self._values:
            node = self._graph.nodes[edge[0]]
            if node.op in VARIABLES:
                parameter = self._parameters.add(node)
                text = parameter.expression
                self._values[edge] = Value(text, TENSOR, parameter.dtype, parameter.shape)
            elif node.op == "Const":
                array = constant_array(self._graph, node)
                self._values[edge] = self._constants.value(array, node.name)
            elif node.name in self.subject.unchanged:
                edge = self.subject.unchanged[node.name]
            elif node.op in SAME and node.inputs:
                edge = node.inputs[0]
            else:
                raise BadInput(
                    f"{self._graph.path}: output {edge[1]} of node {node.name!r} ({node.op}) is "
                    "used, but the op is not known to have such an output"
                )
        return self._values[edge]

    @property
    def flags(self) -> List[str]:
        """The graph's flags for training, `self.training` in the model."""
        told = {edge[0] for edge, value in self._values.items() if str(value) == _TRAINS}
        # None stands for the layers that show no flag.
        return sorted(f"{node}:0" for node in told | self._flags if node is not None)

    def computed(self) -> Dict[Edge, Value]:
        """The values computed outside of branches and loops, in the order of the source."""
        inside = frozenset().union(*(layer.inside for layer in self.layers.values()))
        return {
            edge: value
            for edge, value in self._values.items()
            if not (edge in self.inputs or edge[0] in inside)
            and value.kind in (TENSOR, STRINGS)
            and not (value.is_variable or value.constant is not None)
            and self.regions.of.get(edge[0]) == NOWHERE
        }

    def while_training(self, node: str) -> bool:
        """Whether a node runs once in every run of a model that trains."""
        predicates = self.regions.predicates
        return all(
            branch == "1"
            and cond in predicates
            and str(self._values.get(self.subject.beyond(predicates[cond]))) == _TRAINS
            for cond, branch in self.regions.of.get(node, NOWHERE)
        )

    def in_loop(self, node: str) -> bool:
        """Whether a node is computed in every iteration of a loop."""
        return bool(self.regions.rounds(node))

    def _refuse_unassigned(self) -> None:
        made = [one for block in self._blocks.values() for one in block.statements]
        names = set().union(*map(assigned, made))
        missing = unassigned(self.block, [value.text for value in self.outputs], names)
        nodes = sorted(edge[0] for edge, value in self._values.items() if value.text in missing)
        if missing:
            raise BadInput(
                f"{self._graph.path}: node {[*nodes, *missing][0]!r} lies in a branch or a loop, "
                "and its value is used outside of it; name the tensor that tf.cond or "
                "tf.while_loop returns as the output"
            )

    def _emit(self, node: Node) -> None:
        name = node.name
        if name in self._lookups:
            self._look_up(node)
        elif name in self.layers:
            self._layer(node, self.layers[name])
        elif name in self._flags or is_training_flag(self._graph, node):
            self._values[name, 0] = Value(_TRAINS, HOST, "bool", ())
        elif self.features.of((name, 0)) is not None:
            self._input(node)
        elif node.op in TABLES:
            self._values[name, 0] = Value(self.tables.attribute(node), OBJECT)
        elif name in self.regions.cond_of:
            self._branches(node)
        elif name in self.regions.frame_of:
            self._loop(node)
        elif name in self.regions.conditions:
            self._block(node).append(Until(str(self.value(node.inputs[0]))))
        elif not (node.op in {"Const", *SAME, *VARIABLES} or name in self.subject.unchanged):
            self._compute(node)

    def _layer(self, node: Node, layer: Layer) -> None:
        values = [self.value(edge) for edge in layer.inputs]
        if layer.same:
            self._values[node.name, 0] = values[0]
            return
        for name, array in layer.constants:
            of = only_input(self._graph, self.features, layer.inputs[0]) or node.name
            values.append(self._constants.value(array, f"{of}/{name}"))
        written = layer.write(self._parameters, self.modules, values)
        key = (written, self.regions.of[node.name])
        first = self._first.setdefault(key, node.name) if layer.again else node.name
        if first == node.name:
            self._assign(node, written, TENSORS if layer.static else None)
        else:
            self._values[node.name, 0] = self._values[first, 0]

    def _block(self, node: Node) -> List[Statement]:
        return self._blocks.setdefault(self.regions.of[node.name], Block()).statements

    def _assign(self, node: Node, written: Expression, kind: Optional[str] = None) -> None:
        """Gives the outputs of `node` names, in a statement of this kind, or of the node's."""
        target = self._names.of(node)
        self._count(node, len(target) + len(getattr(written, "text", written)))
        inline = node.op not in RANDOM
        if isinstance(written, Many):
            self._count(node, written.outputs * len(target))
            numbers = range(written.outputs)
            targets = [target] + [self._names.fresh(target) for _ in numbers[1:]]
            for number, one in zip(numbers, targets):
                value = self._value(node, number, one, written.hosts)
                value = value._replace(shape=written.shape) if written.hosts else value
                self._values[node.name, number] = value
            kind = self._kind(node, written.text, written.hosts)
            text = written.text if len(targets) > 1 else f"{written.text}[0]"
            self._block(node).append(Assign(targets, text, inline, kind))
            return
        if isinstance(written, Host):
            value = self._value(node, 0, target, True)._replace(shape=written.shape)
        else:
            value = self._value(node, 0, target)
        text = written.text if isinstance(written, Host) else written
        self._values[node.name, 0] = value
        kind = kind or self._kind(node, text, isinstance(written, Host))
        self._block(node).append(Assign([target], text, inline, kind))

    def _count(self, node: Node, letters: int) -> None:
        """Refuses a source that is longer than that of any real model."""
        self._letters += letters
        if self._letters > _MOST_LETTERS:
            raise BadInput(
                f"{self._graph.path}: with node {node.name!r} ({node.op}) the source of the model "
                f"has more than {_MOST_LETTERS:,} letters; is it of so many outputs, or sizes?"
            )

    def _kind(self, node: Node, text: str, host: bool) -> str:
        read = self.regions.read_by(node)
        of_text = any(self.value(edge).kind == STRINGS for edge in read)
        of_table = any(self._graph.nodes[name].op in TABLES for name, _ in read)
        if of_text or of_table or node.op in DYNAMIC_OPS or _TO_PYTHON.search(text):
            return DYNAMIC
        return SIZES if host else TENSORS

    def _value(self, node: Node, number: int, name: str, host: bool = False) -> Value:
        """A value with the graph's data type and shape."""
        dtype = output_dtype(self._graph, node, number)
        kind = HOST if host else kind_of(dtype)
        return Value(name, kind, dtype, output_shape(self._graph, node, number))

    def _compute(self, node: Node) -> None:
        values = tuple(self.value(edge) for edge in node.inputs)
        call = Call(self._graph, node, values)
        folded = self._folded(call) if node.op not in RANDOM else None
        if folded is not None:
            for number, array in enumerate(folded):
                value = self._constants.value(array, node.name)
                self._values[node.name, number] = value
            return
        # Equal random ops are not merged: each draws its own values.
        if node.op in RANDOM or node.op in tensor_arrays.OPS:
            self._assign(node, write(call))
            return
        first = self._first.setdefault(self._key(node, values), node.name)
        if first == node.name:
            self._assign(node, write(call))
        for number in itertools.count() if first != node.name else ():
            if (first, number) not in self._values:
                break
            self._values[node.name, number] = self._values[first, number]

    def _folded(self, call: Call) -> Optional[List[numpy.ndarray]]:
        try:
            return fold(call, self._room)
        except TooMuch as error:
            if error.values <= _MOST_COMPUTED:
                return None
            raise call.refusal(
                f"it makes {error.values:,} values of constants alone, expected at most "
                f"{_MOST_COMPUTED:,}"
            ) from None

    def _key(self, node: Node, values: Tuple[Value, ...]) -> Any:
        """A key, equal for nodes that compute the same in one block, as two towers may."""
        # Attributes such as _class and _output_shapes annotate a node; they do not change its
        # values.
        attributes = frozenset(item for item in node.attrs.items() if not item[0].startswith("_"))
        return node.op, attributes, self.regions.of[node.name], tuple(map(_identity, values))

    def _look_up(self, node: Node) -> None:
        """Writes a look-up; the first look-up of a collection writes the call of the collection."""
        group, feature = self._lookups[node.name]
        key = id(group)  # a collection of another level may wish for the same name
        if key not in self._found:
            self._found[key] = self._looked_up(group, self._block(node))
        collection, given, found = self._found[key]
        self._assign(node, collection.result(feature, found, given[feature]))

    def _looked_up(self, group: Group, block: List[Statement]) -> Found:
        values = {edge: self.value(edge) for edge in group.inputs}
        collection, given = Collection(group, self._parameters, self.modules), {}
        for feature, lookup in group.lookups.items():
            given[feature] = collection.given(feature, values)
            # Bags of the same ids, as of several tables for one feature, are made once per block.
            if lookup.segments is not None:
                key = id(block), given[feature]
                if key not in self._bags:
                    self._bags[key] = self._names.fresh(feature + "_bags")
                    block.append(Assign([self._bags[key]], given[feature], kind=DYNAMIC))
                given[feature] = self._bags[key]
        found = self._names.fresh(collection.attribute + "_found")
        block.append(Assign([found], collection.call(given), inline=False))
        return Found(collection, given, found)

    def _input(self, node: Node) -> None:
        if self.in_loop(node.name):
            raise BadInput(
                f"{self._graph.path}: node {node.name!r} ({node.op}) brings new features in every "
                "round of a loop; a module is given the features of one batch. Name an output "
                "within one round, or export a graph that reads its input outside of the loop"
            )
        for edge in self._edges[node.name]:
            feature = self.features.of(edge)
            assert feature is not None, edge
            if self._graph.named and feature.name not in self._graph.named:
                raise UsageError(
                    f"{self._graph.path}: what the model gives depends on {feature.name!r}, which "
                    "no --input names; name it too, or a tensor behind it"
                )
            self.inputs[edge] = feature
            text = f"inputs[{feature.name!r}]"
            if feature.optional:
                default = self.value(node.inputs[0])
                text = f"inputs.get({feature.name!r}, {default.tensor})"
            if feature.part is not None:
                text += f"[{feature.part}]"
            kind = STRINGS if feature.dtype == "string" else TENSOR
            if kind == STRINGS:
                text = f"runtime.Strings.of({text})"
            name = self._names.fresh(local_name(feature.name))
            self._values[edge] = Value(name, kind, feature.dtype, feature.shape)
            self._block(node).append(Assign([name], text, kind=RAW))

    def _branches(self, merge: Node) -> None:
        """A Merge of a tf.cond: one name, which either branch assigns."""
        cond = self.regions.cond_of[merge.name]
        outer = self.regions.of[merge.name]
        sides = [self.value(edge) for edge in self.regions.branch_inputs(merge)]
        # Without the constants, arrays that == compares by element: equal ones have equal text.
        if sides[0][:-1] == sides[1][:-1]:
            self._values[merge.name, 0] = sides[0]
            return
        name = self._names.of(merge)
        kind = sides[0].kind if sides[0].kind == sides[1].kind else TENSOR
        for branch, side in enumerate(sides):
            block = self._blocks.setdefault(outer | {(cond, str(branch))}, Block())
            text = str(side) if kind == HOST else _carried(side)
            block.statements.append(Assign([name], text, inline=False))
        shape = output_shape(self._graph, merge, 0)
        self._values[merge.name, 0] = Value(name, kind, sides[0].dtype, shape)
        # Further Merges of this cond add to the same two blocks: its `if` is written once.
        if cond not in self._opened:
            self._opened.add(cond)
            orelse, then = (self._blocks[outer | {(cond, branch)}] for branch in "01")
            condition = str(self.value(self.regions.predicates[cond]))
            self._block(merge).append(If(condition, then, orelse))

    def _loop(self, node: Node) -> None:
        """A loop's Merge is a variable of the while loop; its Exit is the value after the loop."""
        frame = self.regions.frame_of[node.name]
        loop = self.regions.loops[frame]
        guard = loop_guard(frame)
        if node.op in MERGE:
            entered = self.value(loop.merges[node.name][0])
            if node.name in self.subject.kept:
                self._values[node.name, 0] = entered
                return
            name = self._names.of(node)
            # The initial value is assigned before the loop, in the block around it.
            outside = self.regions.of[node.name] - {guard}
            kind = TENSOR if entered.kind == HOST else entered.kind
            block = self._blocks.setdefault(outside, Block())
            block.statements.append(Assign([name], _carried(entered), inline=False))
            self._values[node.name, 0] = Value(name, kind, entered.dtype)
            return
        assert node.op in EXIT, node
        switch = left_from(self._graph, node)
        assert switch.op in SWITCH, switch
        self._values[node.name, 0] = self.value(switch.inputs[0])
        if frame not in self._opened:
            self._opened.add(frame)
            region = self.regions.of[node.name]
            body = self._blocks[region | {guard}]
            going = {
                name: edge
                for name, (_, edge) in loop.merges.items()
                if name not in self.subject.kept
            }
            targets = [str(self._values[name, 0]) for name in going]
            texts = [_carried(self.value(edge)) for edge in going.values()]
            # One assignment for all variables: each new value is computed from the old ones.
            if targets:
                body.statements.append(Assign(targets, ", ".join(texts), inline=False))
            self._blocks[region].statements.append(While(body))


def _carried(value: Value) -> str:
    """The expression assigned to a name that branches, or the iterations of a loop, share."""
    return str(value) if value.kind == OBJECT else value.tensor


def _identity(value: Value) -> Any:
    """A key that is equal for equal values: those of a small constant, else the expression."""
    if value.constant is None or value.constant.size > _COMPARED:
        return value.text
    return value.dtype, value.constant.shape, repr(value.constant.tolist())


def _conds(regions: Regions) -> Dict[str, Cond]:
    """The predicate of each tf.cond, and its input from the true branch, by its Merges."""
    conds: Dict[str, Cond] = {}
    for node in regions.needed:
        if node.name in regions.cond_of:
            predicate = regions.predicates[regions.cond_of[node.name]]
            conds[node.name] = Cond(predicate, regions.branch_inputs(node)[1])
    return conds


def _kept(graph: Graph, regions: Regions) -> Dict[str, Edge]:
    """By their Merges, the initial values of loop variables that the loop never changes."""
    kept: Dict[str, Edge] = {}
    for loop in regions.loops.values():
        for merge, (entered, following) in loop.merges.items():
            if graph.beyond(following, SAME)[0] == merge:
                kept[merge] = entered
    return kept


def _edges(regions: Regions, outputs: Sequence[Edge]) -> Dict[str, List[Edge]]:
    used = {edge for node in regions.order for edge in regions.read_by(node)} | set(outputs)
    used |= set(regions.predicates.values())
    edges: Dict[str, List[Edge]] = {}
    for edge in sorted(used):
        edges.setdefault(edge[0], []).append(edge)
    return edges
