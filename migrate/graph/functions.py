"""The functions in a graph's library.

    FunctionDef  {1 signature, 3 node_def, 4 ret}           ret is a map {1 key, 2 value}
    OpDef        {1 name, 2 input_arg, 3 output_arg}
    ArgDef       {1 name}

In a function an input is called `argument`, or `node:output:k`: the k-th tensor of the output that
the op's definition calls so. `OUTPUTS` has those definitions, of ops with several outputs.
Source: tensorflow/core/framework/function.proto and op_def.proto
"""

from __future__ import annotations

from typing import Dict, List, Mapping, NamedTuple, Tuple

from migrate.graph.attributes import dtypes, integer
from migrate.graph.metagraph import Edge, Graph, Node, read_node
from semisync.common.errors import BadInput
from semisync.encoding.wire import Value, fields, message, text

_BATCH_NORM = ("y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2")
_SPARSE = ("output_indices", "output_values", "output_shape")
_SPLIT = ("indices", "values", "shape")

# Ops each of whose outputs is one tensor; any other op has one output, or one list.
OUTPUTS: Mapping[str, Tuple[str, ...]] = {
    "FusedBatchNorm": _BATCH_NORM,
    "FusedBatchNormV2": _BATCH_NORM,
    "FusedBatchNormV3": (*_BATCH_NORM, "reserve_space_3"),
    "ListDiff": ("out", "idx"),
    "LookupTableExportV2": ("keys", "values"),
    "Merge": ("output", "value_index"),
    "NonMaxSuppressionV4": ("selected_indices", "valid_outputs"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseConcat": _SPARSE,
    "SparseCross": _SPARSE,
    "SparseCrossHashed": _SPARSE,
    "SparseCrossV2": _SPARSE,
    "SparseFillEmptyRows": (
        "output_indices",
        "output_values",
        "empty_row_indicator",
        "reverse_index_map",
    ),
    "SparseReduceSumSparse": _SPARSE,
    "SparseReorder": _SPARSE[:2],
    "SparseReshape": ("output_indices", "output_shape"),
    "SparseSlice": _SPARSE,
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "StringSplit": _SPLIT,
    "StringSplitV2": _SPLIT,
    "Switch": ("output_false", "output_true"),
    "TensorArraySplitV3": ("flow_out",),
    "TensorArrayV3": ("handle", "flow"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TopK": ("values", "indices"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
    "UniqueV2": ("y", "idx"),
    "UniqueWithCounts": ("y", "idx", "count"),
    "UniqueWithCountsV2": ("y", "idx", "count"),
}

_PARSED = ("sparse_indices", "sparse_values", "sparse_shapes")

# Ops whose outputs are several lists: each list, and the attribute with its length.
_LISTS: Mapping[str, Tuple[Tuple[str, str], ...]] = {
    "ParseExample": (*((name, "Nsparse") for name in _PARSED), ("dense_values", "Tdense")),
    "ParseExampleV2": (
        *((name, "num_sparse") for name in _PARSED),
        ("dense_values", "Tdense"),
        ("ragged_values", "ragged_value_types"),
        ("ragged_row_splits", "ragged_split_types"),
    ),
    "ParseSingleExample": (*((name, "num_sparse") for name in _PARSED), ("dense_values", "Tdense")),
    "SparseSplit": tuple((name, "num_split") for name in _SPARSE),
}


class Function(NamedTuple):
    """A function of the library.

    Attributes:
        arguments: their names.
        nodes: by name.
        results: the edges that it returns; an argument is an edge of its name.
    """

    arguments: Tuple[str, ...]
    nodes: Dict[str, Node]
    results: Tuple[Edge, ...]


def read_functions(graph: Graph) -> Dict[str, Function]:
    """The functions of the library, by name."""
    return dict(_function(graph, memoryview(data)) for data in graph.functions)


def _function(graph: Graph, data: memoryview) -> Tuple[str, Function]:
    path, name = graph.path, ""
    arguments: List[str] = []
    outputs: List[str] = []
    nodes: Dict[str, Node] = {}
    returned: Dict[str, str] = {}
    for field, value in fields(data, path):
        if field == 1:
            for part, inner in fields(message(value, path), path):
                if part == 1:
                    name = text(inner, path)
                elif part in (2, 3):
                    (arguments if part == 2 else outputs).append(_argument(inner, path))
        elif field == 3:
            node = read_node(message(value, path), path)
            nodes[node.name] = node
        elif field == 4:
            pair = dict(fields(message(value, path), path))
            if 1 in pair and 2 in pair:
                returned[text(pair[1], path)] = text(pair[2], path)
    inside = graph.replace(nodes=nodes)
    whole = {
        node.name: node._replace(inputs=tuple(_edge(inside, *edge) for edge in node.inputs))
        for node in nodes.values()
    }
    results: List[Edge] = []
    for output in outputs:
        if output not in returned:
            raise BadInput(f"{path}: function {name!r} does not say what {output!r} is")
        source, _, number = returned[output].rpartition(":")
        edge = (source, int(number)) if source and number.isdecimal() else (returned[output], 0)
        results.append(_edge(inside, *edge))
    return name, Function(tuple(arguments), whole, tuple(results))


def _argument(value: Value, path: str) -> str:
    return text(dict(fields(message(value, path), path)).get(1, memoryview(b"")), path)


def _edge(function: Graph, name: str, number: int) -> Edge:
    """The edge (node, number of the tensor) for "node:output" and k, as `read_node` splits them."""
    source, colon, output = name.partition(":")
    if not colon:
        return name, number
    node = function.nodes.get(source)
    if node is None:
        raise BadInput(f"{function.path}: a function names {source!r}, which it does not have")
    if node.op in OUTPUTS:
        starts = {one: place for place, one in enumerate(OUTPUTS[node.op])}
    elif node.op in _LISTS:
        starts = _starts(function, node)
    else:
        return source, number
    if output not in starts:
        raise BadInput(f"{function.path}: {node.op} has no output {output!r}; it is damaged")
    return source, starts[output] + number


def _starts(function: Graph, node: Node) -> Dict[str, int]:
    """For each list of outputs, the number of its first tensor."""
    starts: Dict[str, int] = {}
    start = 0
    for name, attribute in _LISTS[node.op]:
        starts[name] = start
        types = dtypes(function, node, attribute)
        # The attribute is a list of types or a number of outputs.
        start += len(types) or integer(function, node, attribute)
    return starts
