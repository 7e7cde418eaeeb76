"""Ops of one number and of two, by what they are defined on."""

import numpy

from tests.model.ops.cases.case import Case, bools, floats, integers, raw, vector

ANY, POSITIVE, UNIT, ABOVE_ONE = (-4.0, 4.0), (0.05, 4.0), (-0.95, 0.95), (1.05, 4.0)

# The interval on which values and gradients are compared.
UNARY = {
    "Abs": ANY,
    "Acos": UNIT,
    "Acosh": ABOVE_ONE,
    "Asin": UNIT,
    "Asinh": ANY,
    "Atan": ANY,
    "Atanh": UNIT,
    "Ceil": ANY,
    "Cos": ANY,
    "Cosh": ANY,
    "Digamma": POSITIVE,
    "Elu": ANY,
    "Erf": ANY,
    "Erfc": ANY,
    "Erfinv": UNIT,
    "Exp": ANY,
    "Expm1": ANY,
    "Floor": ANY,
    "Inv": POSITIVE,
    "IsFinite": ANY,
    "IsInf": ANY,
    "IsNan": ANY,
    "LeakyRelu": ANY,
    "Lgamma": POSITIVE,
    "Log": POSITIVE,
    "Log1p": POSITIVE,
    "Ndtri": (0.05, 0.95),
    "Neg": ANY,
    "OnesLike": ANY,
    "Reciprocal": POSITIVE,
    "Relu": ANY,
    "Relu6": (-8.0, 8.0),
    "Rint": ANY,
    "Round": ANY,
    "Rsqrt": POSITIVE,
    "Selu": ANY,
    "Sigmoid": ANY,
    "Sign": ANY,
    "Sin": ANY,
    "Sinh": ANY,
    "Softplus": (-30.0, 30.0),
    "Softsign": ANY,
    "Sqrt": POSITIVE,
    "Square": ANY,
    "Tan": UNIT,
    "Tanh": ANY,
    "ZerosLike": ANY,
}
UNARY_INTEGERS = ("Abs", "Neg", "OnesLike", "Sign", "Square", "ZerosLike")

BINARY = {
    "Add": ANY,
    "AddV2": ANY,
    "Atan2": POSITIVE,
    "Div": POSITIVE,
    "DivNoNan": ANY,
    "Equal": ANY,
    "FloorDiv": POSITIVE,
    "FloorMod": POSITIVE,
    "Greater": ANY,
    "GreaterEqual": ANY,
    "Less": ANY,
    "LessEqual": ANY,
    "Maximum": ANY,
    "Minimum": ANY,
    "Mod": POSITIVE,
    "Mul": ANY,
    "MulNoNan": ANY,
    "NotEqual": ANY,
    "Pow": POSITIVE,
    "RealDiv": POSITIVE,
    "SquaredDifference": ANY,
    "Sub": ANY,
    "TruncateMod": POSITIVE,
    "Xdivy": POSITIVE,
    "Xlog1py": POSITIVE,
    "Xlogy": POSITIVE,
}
BINARY_INTEGERS = (
    "Add",
    "AddV2",
    "Div",
    "Equal",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Maximum",
    "Minimum",
    "Mod",
    "Mul",
    "NotEqual",
    "SquaredDifference",
    "Sub",
    "TruncateDiv",
)
BITS = ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift")
DIVISIONS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv")

_X = floats(2, 3)

CASES = [
    Case("AccumulateNV2", lambda x, y: raw.AccumulateNV2(inputs=[x, y], shape=[2, 3]), [_X, _X]),
    Case("AddN", lambda x, y: raw.AddN(inputs=[x, y, x]), [_X, _X]),
    Case("AddN", lambda x: raw.AddN(inputs=[x]), [_X]),
    Case("ApproximateEqual", lambda x: raw.ApproximateEqual(x=x, y=x + 1e-6), [_X]),
    Case("ApproximateEqual", lambda x: raw.ApproximateEqual(x=x, y=x + 0.1, tolerance=0.2), [_X]),
    Case(
        "ClipByValue",
        lambda x: raw.ClipByValue(t=x, clip_value_min=-1.0, clip_value_max=1.0),
        [_X],
    ),
    Case(
        "ClipByValue",
        lambda x, y: raw.ClipByValue(t=x, clip_value_min=y, clip_value_max=1.5),
        [_X, numpy.float32(0.5)],
        gradient=False,
    ),
    *(
        Case(
            "ClipByValue",
            lambda x, low=low: raw.ClipByValue(t=x, clip_value_min=low, clip_value_max=0.5),
            [_X],
            gradient=False,
        )
        for low in (1.0, _X / 2)  # above the other bound
    ),
    *(
        Case("Bitcast", lambda x, t=t: raw.Bitcast(input=x, type=t), [x], gradient=False)
        for x, t in [
            (_X, "int32"),
            (_X, "uint8"),
            (integers(3, 2), "int64"),
            (integers(3), "uint8"),
        ]
    ),
    Case("LeakyRelu", lambda x: raw.LeakyRelu(features=x, alpha=0.01), [_X]),
    Case("Invert", lambda x: raw.Invert(x=x), [integers(3)]),
    Case("LogicalAnd", lambda x, y: raw.LogicalAnd(x=x, y=y), [bools(2, 3), bools(3)]),
    Case("LogicalAnd", lambda x: raw.LogicalAnd(x=x, y=True), [bools(2, 3)]),
    Case("LogicalNot", lambda x: raw.LogicalNot(x=x), [bools(2, 3)]),
    Case("LogicalOr", lambda x, y: raw.LogicalOr(x=x, y=y), [bools(2, 3), bools(3)]),
    Case("Maximum", lambda x: raw.Maximum(x=x, y=0.25), [vector(-1, 0.25, 2, dtype="float32")]),
    Case("Maximum", lambda x: raw.Maximum(x=0.25, y=x), [vector(-1, 0.25, 2, dtype="float32")]),
    Case("Maximum", lambda x: raw.Maximum(x=0.0, y=x), [vector(-1, 0, 2, dtype="float32")]),
    Case("Maximum", lambda x: raw.Maximum(x=0.2 * x, y=x), [vector(-1, 0, 2, dtype="float32")]),
    Case("Maximum", lambda x: raw.Maximum(x=3, y=x), [integers(4)]),
    Case("Minimum", lambda x: raw.Minimum(x=x, y=0.25), [vector(-1, 0.25, 2, dtype="float32")]),
    Case("Minimum", lambda x: raw.Minimum(x=0.25, y=x), [vector(-1, 0.25, 2, dtype="float32")]),
    Case("Minimum", lambda x: raw.Minimum(x=x, y=3), [integers(4)]),
    Case("Pow", lambda x: raw.Pow(x=-2.0, y=x), [vector(1, 2, 3, dtype="float32")], gradient=False),
    Case("Pow", lambda x: raw.Pow(x=x, y=2.0), [_X]),
    Case("Pow", lambda x: raw.Pow(x=x, y=3), [integers(4)]),
    Case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), [bools(2, 3), _X, _X]),
    Case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), [vector(1, 0) > 0, _X, -_X]),
    Case("Select", lambda c, x, y: raw.Select(condition=c, x=x, y=y), [numpy.True_, _X, -_X]),
    Case(
        "SelectV2", lambda c, x, y: raw.SelectV2(condition=c, t=x, e=y), [bools(3), _X, floats(3)]
    ),
    Case("SelectV2", lambda c, x: raw.SelectV2(condition=c, t=x, e=-1.5), [bools(3), _X]),
    Case("SelectV2", lambda c: raw.SelectV2(condition=c, t=2, e=-1), [bools(3)]),
]
