"""Functions made part of the graph: calls, and the `If` and `While` of control flow 2.

    PartitionedCall(x...)     the function's nodes, named CALL/node
    If(pred, x...)            Switches of pred, both branches' nodes, and a Merge per output
    While(x...)               Enter, Merge, Switch, Exit and NextIteration per variable, LoopCond

TensorFlow itself does this before it runs them; here it leaves `migrate.model.control` one form of
control flow. A node of a function that has no inputs waits for the function's pivot, which
determines the branch or the iteration that it runs in; a node that waited for a call waits for the
nodes that end it.
Source: tensorflow/core/common_runtime/lower_if_op.cc, lower_while_op.cc, inline_function_utils.cc
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Sequence, Tuple

from graph_rewrite.graph.ops import IFS, LOOPS, PLAIN_CALLS
from migrate.graph.attributes import function
from migrate.graph.functions import Function, read_functions
from migrate.graph.metagraph import Edge, Graph, Node
from semisync.common.budget import Budget
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge, split
from semisync.common.walks import Ends
from semisync.encoding.wire import encode_varint

# Bounds on the lowered graph, since functions may call each other, or themselves, without end.
_MOST_MADE = 50_000  # nodes and inputs of nodes
_MOST_TIMES = 10  # plus this many times those in the file
_MOST_LETTERS = 1 << 26  # in names, each of which contains those of all calls around a node


def without_calls(graph: Graph) -> Graph:
    """The graph without calls of functions; itself if it has none.

    Raises:
        BadInput: a function is missing.
    """
    if not any(node.op in PLAIN_CALLS | IFS | LOOPS for node in graph.nodes.values()):
        return graph
    lowering = _Lowering(graph, read_functions(graph))
    pending = list(graph.nodes.values())
    while pending:
        pending = lowering.take(pending)
    signatures = {
        key: signature._replace(
            outputs={name: lowering.real(tensor) for name, tensor in signature.outputs.items()}
        )
        for key, signature in graph.signatures.items()
    }
    return graph.replace(
        nodes=lowering.rewired(lowering.nodes),
        signatures=signatures,
        calls=lowering.rewired(lowering.calls),
    )


def _size(node: Node) -> int:
    return 1 + len(node.inputs) + len(node.controls)


class _Lowering:
    """A graph while its calls are replaced.

    Attributes:
        nodes: the ordinary nodes so far.
        calls: the calls that were replaced.
    """

    def __init__(self, graph: Graph, functions: Mapping[str, Function]) -> None:
        self._graph, self._functions = graph, functions
        written = [*graph.nodes.values()]
        written += [node for each in functions.values() for node in each.nodes.values()]
        calling = f"{graph.path}: its functions call each other, or themselves, to more than"
        most = _MOST_MADE + _MOST_TIMES * sum(map(_size, written))
        self._room = Budget(most, f"{calling} {most:,} nodes and inputs of nodes")
        letters = f"{calling} {_MOST_LETTERS:,} letters in the names of nodes"
        self._letters = Budget(_MOST_LETTERS, letters)
        self.nodes: Dict[str, Node] = {}
        self.calls: Dict[str, Node] = {}
        self._results: Dict[Edge, Edge] = {}  # output of a call -> the tensor that replaces it
        self._real = Ends(self._results.get, graph.path)  # asked once all results are there
        self._ends: Dict[str, Tuple[str, ...]] = {}  # call -> the nodes after which it is complete

    def take(self, nodes: Sequence[Node]) -> List[Node]:
        """Keeps ordinary nodes; returns the nodes that replace the calls."""
        made: List[Node] = []
        for node in nodes:
            if node.op in PLAIN_CALLS:
                self._call(made, node)
            elif node.op in IFS:
                self._if(made, node)
            elif node.op in LOOPS:
                self._while(made, node)
            else:
                self.nodes[node.name] = node
        return made

    def rewired(self, nodes: Mapping[str, Node]) -> Dict[str, Node]:
        """The nodes, whose inputs from calls are replaced."""
        return {
            name: node._replace(
                inputs=tuple(self._real(edge) for edge in node.inputs),
                controls=tuple(end for one in node.controls for end in self._ends.get(one, (one,))),
            )
            for name, node in nodes.items()
        }

    def real(self, tensor: str) -> str:
        """The name of the tensor that replaces one, if that is the output of a call."""
        return of_edge(self._real(split(tensor)))

    def _returns(self, node: Node, results: Sequence[Edge], ends: Sequence[str]) -> None:
        self._results.update(((node.name, k), edge) for k, edge in enumerate(results))
        self._ends[node.name] = tuple(ends)
        self.calls[node.name] = node

    def _call(self, made: List[Node], node: Node) -> None:
        pivot = f"{node.name}/=pivot"  # "=" is not allowed in a node's name: no function has this
        made.append(Node(pivot, "NoOp", node.inputs, {}, node.controls))
        self._returns(node, self._inline(made, node, "f", "", node.inputs, pivot), [pivot])

    def _if(self, made: List[Node], node: Node) -> None:
        given_predicate, *data = node.inputs
        predicate = (f"{node.name}/pred_id", 0)
        pivot = f"{node.name}/Switch"
        made.append(Node(predicate[0], "Identity", (given_predicate,), {}, node.controls))
        made.append(Node(pivot, "Switch", (predicate, predicate), {}))
        switches = [f"{node.name}/switch_{k}" for k in range(len(data))]
        for name, edge in zip(switches, data):
            made.append(Node(name, "Switch", (edge, predicate), {}))
        sides = []
        for number, branch in enumerate(("else_branch", "then_branch")):
            waits = f"{node.name}/{branch}_pivot"
            made.append(Node(waits, "Identity", ((pivot, number),), {}))
            given = [(name, number) for name in switches]
            sides.append(self._inline(made, node, branch, branch, given, waits))
        merges = []
        # Merge takes the output of the branch that ran; sides[0] is the else branch, as in Switch.
        for k, pair in enumerate(zip(*sides)):
            merges.append(f"{node.name}/merge_{k}")
            made.append(Node(merges[k], "Merge", pair, {}))
        self._returns(node, [(name, 0) for name in merges], merges or [predicate[0]])

    def _while(self, made: List[Node], node: Node) -> None:
        def each(word: str) -> List[str]:
            return [f"{node.name}/{word}_{k}" for k in range(len(node.inputs))]

        enters, merges, switches = each("enter"), each("merge"), each("switch")
        nexts, exits = each("next"), each("exit")
        condition, pivot = f"{node.name}/condition", f"{node.name}/body_pivot"
        frame = node.name.encode()
        named = {"frame_name": b"\x12" + encode_varint(len(frame)) + frame}
        given = [(name, 0) for name in merges]
        # The condition runs in every iteration, so that its pivot is a Merge; the body runs behind
        # the Switch.
        (going,) = self._inline(made, node, "cond", "cond", given, merges[0])
        given = [(name, 1) for name in switches]
        following = self._inline(made, node, "body", "body", given, pivot)
        if len(following) != len(node.inputs):
            raise BadInput(
                f"{self._graph.path}: the body of {node.name!r} returns {len(following)} values, "
                f"expected {len(node.inputs)}; the graph is damaged"
            )
        made.append(Node(condition, "LoopCond", (going,), {}))
        made.append(Node(pivot, "Identity", (given[0],), {}))
        for k, edge in enumerate(node.inputs):
            made += [
                Node(enters[k], "Enter", (edge,), named, node.controls),
                Node(merges[k], "Merge", ((enters[k], 0), (nexts[k], 0)), {}),
                Node(switches[k], "Switch", ((merges[k], 0), (condition, 0)), {}),
                Node(nexts[k], "NextIteration", (following[k],), {}),
                Node(exits[k], "Exit", ((switches[k], 0),), {}),
            ]
        self._returns(node, [(name, 0) for name in exits], exits)

    def _inline(
        self,
        made: List[Node],
        node: Node,
        attribute: str,
        scope: str,
        given: Sequence[Edge],
        pivot: str,
    ) -> List[Edge]:
        """Adds the nodes of a function; returns the edges of its results."""
        name = function(self._graph, node, attribute)
        found = self._functions.get(name)
        if found is None:
            raise BadInput(
                f"{self._graph.path}: node {node.name!r} calls the function {name!r}, which the "
                "graph does not have"
            )
        prefix = f"{node.name}/{scope}/" if scope else f"{node.name}/"
        arguments = dict(zip(found.arguments, given))

        def outside(edge: Edge) -> Edge:
            return arguments[edge[0]] if edge[0] in arguments else (prefix + edge[0], edge[1])

        for inner in found.nodes.values():
            edges = tuple(outside(edge) for edge in inner.inputs)
            controls = tuple(prefix + name for name in inner.controls if name in found.nodes)
            # Only nodes without inputs need the pivot: the others run where their inputs do.
            controls += () if edges or controls else (pivot,)
            whole = inner._replace(name=prefix + inner.name, inputs=edges, controls=controls)
            self._room.take(_size(whole))
            self._letters.take(sum(map(len, (whole.name, *controls, *(name for name, _ in edges)))))
            made.append(whole)
        return [outside(edge) for edge in found.results]
