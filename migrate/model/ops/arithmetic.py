"""Elementwise arithmetic of one or two operands, with broadcasting; data types are kept.

Where TensorFlow and torch differ, for float types: a maximum's gradient goes to the first operand
where both are equal; FloorDiv is the floor of the quotient, torch's `//` is not; TensorFlow's
functions that end in NoNan give 0 where a divisor, or a factor, is 0.
"""

from __future__ import annotations

from typing import Optional, Tuple

import numpy

from migrate.model.ops.values import HOST, Call, Ops, torch_type
from semisync.encoding.dtypes import number_type

_TERMS = 16  # of a sum that is written out
_FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def divide(call: Call) -> str:
    """`x / y`; of integers the quotient without its fraction"""
    first, second = _operands(call)
    if call.dtype("T") in _FLOATS:
        # torch takes a number over a tensor for the number times the reciprocal
        first = first if first in ("1", "1.0") else call[0].tensor
    return quotient(call, first, second)


def quotient(call: Call, first: str, second: str) -> str:
    """`x / y` in the type T; of integers without the fraction."""
    if call.dtype("T") in _FLOATS:
        return f"{first} / {second}"
    return f'torch.div({first}, {second}, rounding_mode="trunc")'


def floor_divide(call: Call) -> str:
    """`x // y`; of floats `torch.floor(x / y)`"""
    if call.dtype("T") in _FLOATS:
        return f"torch.floor({divide(call)})"
    return "{} // {}".format(*_operands(call))


def maximum(call: Call) -> str:
    """`torch.maximum(x, y)`; of floats `x.clamp(min=1.0)`, `torch.relu(x)`, or a function that
    gives equal operands' gradient to the first"""
    return _extreme(call, "maximum", "min")


def minimum(call: Call) -> str:
    """`torch.minimum(x, y)`; of floats `x.clamp(max=1.0)`, or a function that gives equal operands'
    gradient to the first"""
    return _extreme(call, "minimum", "max")


def add_n(call: Call) -> str:
    """`x + y + z`; of many `runtime.add_n([x, y, z])`"""
    first, *rest = call.args
    terms = [first.tensor, *(value.operand for value in rest)]
    # written out, thousands of terms nest more deeply than Python's parser allows
    return " + ".join(terms) if len(terms) <= _TERMS else f"runtime.add_n([{', '.join(terms)}])"


def cast(call: Call) -> str:
    """`x.float()`, `x.long()`, `x.to(torch.int8)`"""
    source, target = call.dtype("SrcT"), call.dtype("DstT")
    if target not in _METHODS and target not in _OTHER_TYPES:
        raise call.refusal(f"it casts to {target}, which no torch tensor of a model has")
    if call[0].kind == HOST:
        return f"torch.tensor({call[0]}, dtype={torch_type(target)})"
    if source == target:
        return call[0].tensor
    method = _METHODS.get(target)
    return (
        f"{call[0].tensor}.{method}()" if method else f"{call[0].tensor}.to({torch_type(target)})"
    )


def power(call: Call) -> str:
    """`x ** y`"""
    first, second = _operands(call)
    # In Python -2 ** x is -(2 ** x).
    return f"({first}) ** {second}" if first.startswith("-") else f"{first} ** {second}"


def bitcast(call: Call) -> str:
    """`x.view(torch.int32)`; the last axis counts the parts of a number"""
    sizes = [_width(call.dtype(name)) for name in ("T", "type")]
    text = f"{call[0].tensor}.contiguous()"
    if sizes[0] > sizes[1]:
        text += ".unsqueeze(-1)"
    text += f".view({torch_type(call.dtype('type'))})"
    return text + (".squeeze(-1)" if sizes[0] < sizes[1] else "")


def clip(call: Call) -> str:
    """`x.clamp(0.0, 1.0)`; `x.clamp(max=high).clamp(min=low)` where low may be above high, which
    TensorFlow gives then, and torch's `clamp` does not"""
    x, low, high = call[0].tensor, call[1], call[2]
    if low.is_literal == high.is_literal and _ordered(low.constant, high.constant):
        return f"{x}.clamp({low}, {high})"
    return f"{x}.clamp(max={high}).clamp(min={low})"


def _ordered(low: Optional[numpy.ndarray], high: Optional[numpy.ndarray]) -> bool:
    return low is not None and high is not None and bool((low <= high).all())


def approximate_equal(call: Call) -> str:
    """`(x - y).abs() < tolerance`"""
    first, second = _operands(call)
    return f"({first} - {second}).abs() < {call.number('tolerance', 1e-5)}"


def _operands(call: Call) -> Tuple[str, str]:
    """Two operands, at least one of which is a tensor."""
    both = call[0].is_literal and call[1].is_literal
    return (call[0].tensor if both else call[0].operand), call[1].operand


def _extreme(call: Call, function: str, bound: str) -> str:
    first, second = call[0], call[1]
    if second.is_literal and not first.is_literal:
        return f"{first}.clamp({bound}={second})"
    if call.dtype("T") not in _FLOATS:
        if first.is_literal and not second.is_literal:
            return f"{second}.clamp({bound}={first})"
        return f"torch.{function}({first.tensor}, {second.tensor})"
    known = first.constant if first.is_literal else None
    if function == "maximum" and known is not None and known.item() == 0:
        return f"torch.relu({second.tensor})"
    return f"runtime.{function}({first.operand}, {second.tensor})"


def _width(dtype: str) -> int:
    """How many bytes a number has."""
    return number_type(dtype).itemsize


_METHODS = {
    "bool": "bool",
    "float16": "half",
    "bfloat16": "bfloat16",
    "float32": "float",
    "float64": "double",
    "int32": "int",
    "int64": "long",
}
_OTHER_TYPES = ("int8", "int16", "uint8", "uint16", "uint32", "complex64", "complex128")

OPS: Ops = {
    "Abs": "{0:t}.abs()",
    "AccumulateNV2": add_n,
    "Acos": "torch.acos({0:t})",
    "Acosh": "torch.acosh({0:t})",
    "Add": "{0} + {1}",
    "AddN": add_n,
    "AddV2": "{0} + {1}",
    "ApproximateEqual": approximate_equal,
    "Asin": "torch.asin({0:t})",
    "Asinh": "torch.asinh({0:t})",
    "Atan": "torch.atan({0:t})",
    "Atan2": "torch.atan2({0:t}, {1:t})",
    "Atanh": "torch.atanh({0:t})",
    "Bitcast": bitcast,
    "BitwiseAnd": "{0} & {1}",
    "BitwiseOr": "{0} | {1}",
    "BitwiseXor": "{0} ^ {1}",
    "Cast": cast,
    "Ceil": "torch.ceil({0:t})",
    "ClipByValue": clip,
    "Cos": "torch.cos({0:t})",
    "Cosh": "torch.cosh({0:t})",
    "Digamma": "torch.digamma({0:t})",
    "Div": divide,
    "DivNoNan": "runtime.div_no_nan({0:t}, {1:t})",
    "Erf": "torch.erf({0:t})",
    "Erfc": "torch.erfc({0:t})",
    "Erfinv": "torch.erfinv({0:t})",
    "Exp": "torch.exp({0:t})",
    "Expm1": "torch.expm1({0:t})",
    "Floor": "torch.floor({0:t})",
    "FloorDiv": floor_divide,
    "FloorMod": "{0} % {1}",
    "Inv": "1 / {0:t}",
    "Invert": "~{0:t}",
    "LeftShift": "{0} << {1}",
    "Lgamma": "torch.lgamma({0:t})",
    "Log": "torch.log({0:t})",
    "Log1p": "torch.log1p({0:t})",
    "Maximum": maximum,
    "Minimum": minimum,
    "Mod": "torch.fmod({0:t}, {1:t})",
    "Mul": "{0} * {1}",
    "MulNoNan": "runtime.mul_no_nan({0:t}, {1:t})",
    "Ndtri": "torch.special.ndtri({0:t})",
    "Neg": "-{0:t}",
    "Pow": power,
    "RealDiv": divide,
    "Reciprocal": "1 / {0:t}",
    "RightShift": "{0} >> {1}",
    "Rint": "torch.round({0:t})",
    "Round": "torch.round({0:t})",
    "Rsqrt": "torch.rsqrt({0:t})",
    "Sigmoid": "torch.sigmoid({0:t})",
    "Sign": "torch.sign({0:t})",
    "Sin": "torch.sin({0:t})",
    "Sinh": "torch.sinh({0:t})",
    "Sqrt": "torch.sqrt({0:t})",
    "Square": "torch.square({0:t})",
    "SquaredDifference": "torch.square({0} - {1})",
    "Sub": "{0} - {1}",
    "Tan": "torch.tan({0:t})",
    "Tanh": "torch.tanh({0:t})",
    "TruncateDiv": divide,
    "TruncateMod": "torch.fmod({0:t}, {1:t})",
    "Xdivy": "runtime.xdivy({0:t}, {1:t})",
    "Xlog1py": "runtime.xlog1py({0:t}, {1:t})",
    "Xlogy": "runtime.xlogy({0:t}, {1:t})",
}
