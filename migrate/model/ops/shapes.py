"""Shapes, and arithmetic on them, in Python's own numbers.

`Shape`, `Size` and `Rank` of a tensor give Python numbers; an op whose arguments are such numbers,
or constants of at most one axis, and of which at least one is not a constant, is written in Python
too, where HOST has it: `x.shape[0] * 2` rather than a tensor of one number. A vector of sizes is a
tuple of Python.
"""

from __future__ import annotations

import itertools
from typing import Callable, Dict, List, Optional, Union

from migrate.graph.metagraph import Graph
from migrate.model.ops.arguments import elements, number, sizes
from migrate.model.ops.slicing import Part, slices
from migrate.model.ops.values import HOST as ON_HOST
from migrate.model.ops.values import Call, Host, Many, Ops, Value
from semisync.common.walks import reachable

_INTEGERS = ("int32", "int64")
_COUNTING = {"Add", "AddV2", "Cast", "Identity", "Maximum", "Minimum", "Mul", "Range", "Sub"}
_MOST_COUNTING = 64  # ops between a rank and a range of axes
_VECTOR = (None,)


def shape(call: Call) -> Host:
    """`x.shape`"""
    return Host(f"{call[0].tensor}.shape", (call[0].rank,))


def size(call: Call) -> Host:
    """`x.numel()`"""
    return Host(f"{call[0].tensor}.numel()", ())


def rank(call: Call) -> Host:
    """`x.ndim`"""
    return Host(f"{call[0].tensor}.ndim", ())


def shapes(call: Call) -> Many:
    """`(x.shape, y.shape)`"""
    texts = [f"{value.tensor}.shape" for value in call.args]
    return Many("(" + ", ".join(texts) + ",)", len(texts), True, _VECTOR)


def infix(operator: str) -> Callable[[Call], Optional[Host]]:
    """An operator of two numbers, or of each pair in tuples of a known length."""
    return elementwise(f"{{}} {operator} {{}}")


def elementwise(form: str) -> Callable[[Call], Optional[Host]]:
    """An expression of numbers, or elementwise of tuples of a known length."""

    def write(call: Call) -> Optional[Host]:
        ranks = [value.rank for value in call.args]
        # All are scalars.
        if not any(ranks) and None not in ranks:
            return Host(form.format(*map(number, call.args)), ())
        if any(rank not in (0, 1) for rank in ranks):
            return None
        parts = [elements(value) if value.rank else [number(value)] for value in call.args]
        lengths = {len(part) for part in parts if part is not None} - {1}
        if None in parts or len(lengths) > 1:
            return None
        length = lengths.pop() if lengths else 1
        columns = [part * length if len(part) == 1 else part for part in parts if part is not None]
        return Host(_tuple([form.format(*row) for row in zip(*columns)]), (length,))

    return write


def product(call: Call) -> Optional[Host]:
    """`x.shape[0] * 2`; not for products of products of products: Python's integers grow with each,
    while TensorFlow's stay at 32 or 64 bits."""
    return _TIMES(call) if _factors(call.graph, call.node.name) <= _MOST_FACTORS else None


def products(call: Call) -> Optional[Host]:
    """`math.prod(x.shape)`, as `product`."""
    return _PROD(call) if _factors(call.graph, call.node.name) <= _MOST_FACTORS else None


def reduction(function: str) -> Callable[[Call], Optional[Host]]:
    """All numbers of a tuple in one, as `math.prod(x)`."""

    def write(call: Call) -> Optional[Host]:
        if call[0].rank != 1 or call[1].constant is None or not call[1].constant.size:
            return None
        text = f"{function}({sizes(call[0])})"
        return Host(_tuple([text]), (1,)) if call.flag("keep_dims") else Host(text, ())

    return write


def same(call: Call) -> Optional[Host]:
    """A cast from one integer type to another."""
    integers = {call.dtype("SrcT"), call.dtype("DstT")} <= set(_INTEGERS)
    return Host(call[0].text, call[0].shape) if integers else None


def part(call: Call) -> Optional[Host]:
    """`x.shape[0]`, `x.shape[1:]`"""
    items = slices(call) if call[0].rank == 1 else None
    if items is None or len(items) != 1 or items[0] in ("...", "None"):
        return None
    source, item = sizes(call[0]), items[0]
    return Host(f"{source}[{item}]", _VECTOR if isinstance(item, Part) else ())


def part_of_size(call: Call) -> Optional[Host]:
    """`x.shape[1:3]`, from the first position and the count."""
    first, count = elements(call[1]), elements(call[2])
    if call[0].rank != 1 or not first or not count:
        return None
    # Both must be numbers, not expressions; -1 takes the rest.
    if not (first[0] + count[0].lstrip("-")).isdecimal():
        return None
    last = "" if count[0] == "-1" else str(int(first[0]) + int(count[0]))
    length = None if not last else int(count[0])
    return Host(f"{sizes(call[0])}[{first[0]}:{last}]", (length,))


def gather(call: Call) -> Optional[Host]:
    """`(x.shape[0], x.shape[2])`"""
    if call[0].rank != 1 or call[1].constant is None or (call[1].constant < 0).any():
        return None
    text = sizes(call[0])
    if not call[1].rank:
        return Host(f"{text}[{number(call[1])}]", ())
    return Host(
        _tuple([f"{text}[{place}]" for place in call.integers(1)]), (len(call.integers(1)),)
    )


def concat(call: Call) -> Optional[Host]:
    """`(n, *x.shape[1:])`"""
    parts = [value for value in call.args if value.rank == 1]
    if len(parts) != len(call) - 1:
        return None
    items: List[str] = []
    lengths: List[Optional[int]] = []
    for value in parts:
        written = _written(value)
        items += [f"*{value}"] if written is None else written
        lengths.append(value.shape[0] if written is None and value.shape else len(written or ()))
    known = [length for length in lengths if length is not None]
    return Host(_tuple(items), (sum(known) if len(known) == len(lengths) else None,))


def pack(call: Call) -> Optional[Host]:
    """`(n, 8)`"""
    if any(value.rank != 0 for value in call.args) or call.dtype("T") not in _INTEGERS:
        return None
    return Host(_tuple([number(value) for value in call.args]), (len(call),))


def unpack(call: Call) -> Optional[Many]:
    """`x.shape`, which gives several names their values"""
    return Many(sizes(call[0]), call.integer("num"), True, ()) if call[0].rank == 1 else None


def reshape(call: Call) -> Optional[Host]:
    """A number as a tuple, a tuple of one as a number."""
    wanted = None if call[1].constant is None else call.integers(1)
    if wanted in ([-1], [1]) and call[0].rank is not None:
        return Host(sizes(call[0]) if call[0].rank else _tuple([number(call[0])]), _VECTOR)
    if wanted == [] and call[0].rank is not None:
        return Host(f"{call[0]}[0]" if call[0].rank else number(call[0]), ())
    return None


def expand_dims(call: Call) -> Optional[Host]:
    """`(n,)`"""
    return Host(_tuple([number(call[0])]), (1,)) if call[0].rank == 0 else None


def squeeze(call: Call) -> Optional[Host]:
    """`x.shape[1:2][0]`"""
    known = call[0].rank == 1 and call[0].shape == (1,)
    return Host(f"{call[0]}[0]", ()) if known else None


def axes(call: Call) -> Optional[Host]:
    """`tuple(range(x.ndim))`, where the numbers count axes; another range is a tensor."""
    if not _counts_axes(call.graph, call.node.name):
        return None
    start, limit, step = map(number, call.args)
    return Host(f"tuple(range({start}, {limit}, {step}))", _VECTOR)


def ones(call: Call) -> Optional[Host]:
    """`(1,) * len(x)`"""
    if call[0].rank != 1:
        return None if call[0].rank is None else Host("1", ())
    return Host(f"(1,) * len({call[0]})", call[0].shape)


def zeros(call: Call) -> Optional[Host]:
    """`(0,) * len(x)`"""
    if call[0].rank != 1:
        return None if call[0].rank is None else Host("0", ())
    return Host(f"(0,) * len({call[0]})", call[0].shape)


def reverse(call: Call) -> Optional[Host]:
    """`x.shape[::-1]`"""
    return Host(f"{call[0]}[::-1]", call[0].shape) if call[0].rank == 1 else None


def choose(call: Call) -> Optional[Host]:
    """`x if condition else y`"""
    if any(value.rank != 0 for value in call.args):
        return None
    condition, first, second = map(number, call.args)
    return Host(f"{first} if {condition} else {second}", ())


def _factors(graph: Graph, name: str) -> int:
    """How many factors a number has on its path from sizes; an upper bound on long paths."""

    def before(one: str) -> List[str]:
        node = graph.nodes[one]
        return [source for source, _ in node.inputs] if node.op in HOST else []

    ops = [graph.nodes[one].op for one in itertools.islice(reachable([name], before), _MOST_STEPS)]
    often = ops.count("Mul") + _OF_PROD * ops.count("Prod")
    return often if len(ops) < _MOST_STEPS else _MOST_STEPS


_TIMES, _PROD = infix("*"), reduction("math.prod")
_MOST_FACTORS, _OF_PROD = 16, 4  # of a number in Python; a Prod counts as so many
_MOST_STEPS = 1024  # ops that are visited; more than these count as too many factors


def _tuple(items: List[str]) -> str:
    return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"


def _written(value: Value) -> Optional[List[str]]:
    """The numbers of a tuple that is a constant or written out; None for a name."""
    if value.constant is not None:
        return [str(one) for one in value.constant.tolist()]
    return elements(value) if value.text.startswith("(") else None


def _counts_axes(graph: Graph, name: str) -> bool:
    """Whether a number depends on the rank of a tensor, and on no other computed value."""

    def computed(one: str) -> List[str]:
        edges = graph.nodes[one].inputs if graph.nodes[one].op in _COUNTING else ()
        return [source for source, _ in edges if graph.nodes[source].op != "Const"]

    found = list(itertools.islice(reachable([name], computed), _MOST_COUNTING + 1))
    counts = (graph.nodes[one].op == "Rank" or bool(computed(one)) for one in found)
    return len(found) <= _MOST_COUNTING and all(counts)


OPS: Ops = {
    "Rank": rank,
    "Shape": shape,
    "ShapeN": shapes,
    "Size": size,
}

# A handler returns None if the op takes tensors in this form.
HOST: Dict[str, Callable[[Call], Optional[Union[Host, Many]]]] = {
    "Add": infix("+"),
    "AddV2": infix("+"),
    "Cast": same,
    "Concat": concat,
    "ConcatV2": concat,
    "Equal": infix("=="),
    "ExpandDims": expand_dims,
    "FloorDiv": infix("//"),
    "FloorMod": infix("%"),
    "Gather": gather,
    "GatherV2": gather,
    "Greater": infix(">"),
    "GreaterEqual": infix(">="),
    "Less": infix("<"),
    "LessEqual": infix("<="),
    "LogicalAnd": infix("and"),
    "LogicalNot": elementwise("not {}"),
    "LogicalOr": infix("or"),
    "Max": reduction("max"),
    "Maximum": elementwise("max({}, {})"),
    "Min": reduction("min"),
    "Minimum": elementwise("min({}, {})"),
    "Mul": product,
    "Neg": elementwise("-{}"),
    "NotEqual": infix("!="),
    "OnesLike": ones,
    "Pack": pack,
    "Prod": products,
    "Range": axes,
    "Reshape": reshape,
    "ReverseV2": reverse,
    "Select": choose,
    "SelectV2": choose,
    "Slice": part_of_size,
    "Squeeze": squeeze,
    "StridedSlice": part,
    "Sub": infix("-"),
    "Sum": reduction("sum"),
    "Unpack": unpack,
    "ZerosLike": zeros,
}


def on_host(call: Call) -> bool:
    """Whether the op of `call` may be computed in Python."""
    constants = [arg.constant is not None and arg.constant.ndim <= 1 for arg in call.args]
    hosts = [arg.kind == ON_HOST for arg in call.args]
    return (
        call.node.op in HOST
        and any(hosts)
        and all(known or host for known, host in zip(constants, hosts))
    )
