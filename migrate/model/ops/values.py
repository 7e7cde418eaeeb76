"""The values of emitted expressions, and one op's call with its arguments.

A value of the graph is one of these at run time:

    tensor    a torch tensor of TensorFlow's data type
    host      a Python number, or a tuple of Python integers: shapes, and arithmetic on them
    strings   runtime.Strings
    object    a lookup table, the list of a TensorArray

A constant is known while the source is written. As an argument of an operator, a scalar constant
is a literal, which torch converts to the tensor's own type; where an op needs a tensor, `tensor`
makes it one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from migrate.graph import attributes
from migrate.graph.attributes import Shape
from migrate.graph.metagraph import Graph, Node
from semisync.common.errors import BadInput

MOST_SIZES = 1 << 12  # axes or parts of a split that are written out
TENSOR, HOST, STRINGS, OBJECT = "tensor", "host", "strings", "object"

TYPES = frozenset(  # types with the same name in torch
    ["bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


class Value(NamedTuple):
    """One output of a node, as emitted.

    Attributes:
        text: Python expression: a name, an attribute, a literal.
        kind: TENSOR, HOST, STRINGS or OBJECT.
        dtype: TensorFlow's name; None if the graph does not state it.
        shape: the graph's static shape; None: not even the rank.
        constant: the value, where it is known.
    """

    text: str
    kind: str = TENSOR
    dtype: Optional[str] = None
    shape: Shape = None
    constant: Optional[numpy.ndarray] = None

    def __str__(self) -> str:
        return self.text

    @property
    def tensor(self) -> str:
        """The expression of a torch tensor, or of Strings, where the text is a literal too."""
        if self.kind != HOST and not self.is_literal:
            return self.text
        if self.kind == STRINGS:
            return f"runtime.Strings.of({self.text})"
        return f"torch.tensor({self.text}, dtype={torch_type(self.dtype)})"

    @property
    def is_literal(self) -> bool:
        """Whether the expression is a Python number, rather than a tensor or a tuple."""
        if self.kind == HOST:
            return self.shape == ()
        known = self.constant is not None and not self.constant.ndim
        return known and not self.text.startswith("self.")

    @property
    def operand(self) -> str:
        """The expression of a Python number or of a torch tensor, as operators take both."""
        return self.text if self.is_literal else self.tensor

    @property
    def is_variable(self) -> bool:
        """Whether it is a parameter or buffer with the value of a variable."""
        return self.kind == TENSOR and self.constant is None and self.text.startswith("self.")

    @property
    def rank(self) -> Optional[int]:
        """How many axes it has; None if the graph does not state it."""
        if self.constant is not None:
            return self.constant.ndim
        return None if self.shape is None else len(self.shape)


class Many(NamedTuple):
    """An expression of a tuple: the outputs of an op with several.

    Attributes:
        hosts: whether each is a Host rather than a tensor.
        shape: of each Host, as there.
    """

    text: str
    outputs: int
    hosts: bool = False
    shape: Shape = None


class Host(NamedTuple):
    """An expression of a Python number or a tuple of integers.

    Attributes:
        shape: () of a number, (length,) of a tuple; None where it is not known which.
    """

    text: str
    shape: Shape = None


@dataclass(frozen=True)
class Call:
    """One op to be written: its node, and its arguments in the order of the node's inputs."""

    graph: Graph
    node: Node
    args: Tuple[Value, ...]

    def __getitem__(self, position: int) -> Value:
        if position >= len(self.args):
            raise self.refusal(f"it has {len(self.args)} inputs; the graph is damaged")
        return self.args[position]

    def __len__(self) -> int:
        return len(self.args)

    def constant(self, position: int) -> numpy.ndarray:
        """The value of an argument that must be known; raises BadInput if it is not."""
        value = self.args[position].constant
        if value is None:
            raise self.refusal(f"its input {position} is computed, expected a constant")
        return value

    def integers(self, position: int) -> List[int]:
        """As `constant`, of one integer or a list of them."""
        known = self.constant(position)
        if known.dtype.kind not in "biu":
            raise self.refusal(f"its input {position} is no integer")
        if known.size > MOST_SIZES:
            raise self.refusal(
                f"its input {position} has {known.size:,} sizes or axes, expected at most "
                f"{MOST_SIZES:,}"
            )
        return [int(value) for value in known.reshape(-1)]

    def integer(self, name: str, default: int = 0) -> int:
        """An attribute; `default` where the node has none."""
        given = name in self.node.attrs
        return attributes.integer(self.graph, self.node, name) if given else default

    def integer_list(self, name: str) -> List[int]:
        """An attribute; empty where the node has none."""
        return attributes.integers(self.graph, self.node, name)

    def number(self, name: str, default: float = 0.0) -> float:
        """A float32 attribute, as the shortest number that is the same float32."""
        given = name in self.node.attrs
        return attributes.float32(self.graph, self.node, name) if given else default

    def numbers(self, name: str) -> List[float]:
        """An attribute that is a list of float32."""
        return attributes.float32s(self.graph, self.node, name)

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute."""
        given = name in self.node.attrs
        return attributes.flag(self.graph, self.node, name) if given else default

    def string(self, name: str, default: bytes = b"") -> bytes:
        """An attribute."""
        given = name in self.node.attrs
        return attributes.string(self.graph, self.node, name) if given else default

    def text(self, name: str, default: str = "") -> str:
        """A string attribute that must be UTF-8."""
        given = name in self.node.attrs
        return attributes.text(self.graph, self.node, name) if given else default

    def dtype(self, name: str, default: str = "") -> str:
        """An attribute: TensorFlow's name of a data type; torch has the same for numbers."""
        found = attributes.dtypes(self.graph, self.node, name) or ([default] if default else [])
        if not found:
            raise self.refusal(f"its attribute {name} is missing; the graph is damaged")
        return found[0]

    def refusal(self, reason: str) -> BadInput:
        """The error with the reason why this op cannot be written."""
        return BadInput(
            f"{self.graph.path}: the op {self.node.op} of node {self.node.name!r} cannot be "
            f"converted: {reason}"
        )


Expression = Union[str, Host, Many]
Handler = Callable[[Call], Expression]
Ops = Dict[str, Union[Expression, Handler]]


def by(write: Callable[..., Expression], *given: Any, said: str) -> Handler:
    """A handler that is `write` with more arguments; said: how the op is written, for its page."""

    def handler(call: Call) -> Expression:
        return write(call, *given)

    handler.__doc__ = said
    return handler


def literal(value: Any) -> str:
    """A numpy scalar, or a nested list, as Python source: the shortest that gives the same."""
    if isinstance(value, numpy.ndarray):
        value = value if value.ndim else value[()]
    if isinstance(value, (list, tuple, numpy.ndarray)):
        return "[" + ", ".join(literal(one) for one in value) + "]"
    if isinstance(value, (bytes, str)):
        return repr(value)
    if isinstance(value, (bool, numpy.bool_)):
        return str(bool(value))
    if isinstance(value, (int, numpy.integer)):
        return str(int(value))
    # str() of a float32 is its shortest decimal: 0.1 rather than 0.10000000149.
    number = float(str(value)) if isinstance(value, numpy.floating) else float(value)
    if number != number or number in (float("inf"), float("-inf")):
        return f"float({str(number)!r})"
    return repr(number)


def as_data(value: numpy.ndarray) -> Any:
    """A constant as JSON: numbers, text, nested lists; invalid UTF-8 becomes surrogate escapes."""
    if value.dtype.kind == "f":
        # As in `literal`: the shortest decimals.
        value = numpy.array([float(str(one)) for one in value.reshape(-1)]).reshape(value.shape)
    if value.dtype == object:
        text = [one.decode("utf-8", "surrogateescape") for one in value.reshape(-1)]
        value = numpy.array(text, object).reshape(value.shape)
    return value.tolist()


def torch_type(dtype: Optional[str]) -> str:
    """A data type of TensorFlow, by its name, as source.

    Raises:
        TypeError: torch has no such type.
    """
    if dtype not in TYPES:
        raise TypeError(f"torch has no tensors of the type {dtype}")
    return f"torch.{dtype}"


def listed(values: Sequence[int]) -> str:
    """Integers as a tuple in Python source."""
    return "(" + ", ".join(map(str, values)) + ("," if len(values) == 1 else "") + ")"
