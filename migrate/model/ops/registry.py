"""Every op that a model may have. A new op is one function, or one expression, and one line.

    "Relu": "torch.relu({0})"         an expression with its arguments; a Many of one where the op
                                      has several outputs, a Host where it gives Python's numbers
    "Reshape": reshape                a function from a Call to such an expression

`{0}` is an argument as Python's operators take it. `{0:t}` is a tensor even of a scalar constant or
a Python number, `{0:n}` a number, `{0:s}` a tuple of sizes, `{0:e}` its elements as separate
arguments: see arguments.py. `KINDS` lists the ops by kind; docs/ops.md is generated from it.
"""

from __future__ import annotations

from typing import Mapping

from migrate.model.ops import (
    activations,
    arithmetic,
    arrays,
    comparisons,
    convolution,
    gathering,
    matrices,
    random,
    reductions,
    shapes,
    slicing,
    sparse,
    strings,
    tensor_arrays,
)
from migrate.model.ops.arguments import number, sizes, spread
from migrate.model.ops.values import Call, Expression, Ops, Value

# Ops the size of whose results depends on the values of their inputs, or that check these values;
# no exporter follows them.
DYNAMIC_OPS = frozenset(
    [
        "Bincount",
        "DenseBincount",
        "DynamicPartition",
        "DynamicStitch",
        "GatherNd",
        "ListDiff",
        "LogUniformCandidateSampler",
        "NonMaxSuppression",
        "NonMaxSuppressionV2",
        "NonMaxSuppressionV3",
        "NonMaxSuppressionV4",
        "ParallelDynamicStitch",
        "ReverseSequence",
        "UniformCandidateSampler",
        "Unique",
        "UniqueV2",
        "UniqueWithCounts",
        "UniqueWithCountsV2",
        "Where",
        *(op for op in activations.RECURRENT if op.startswith("BlockLSTM")),
        "CropAndResize",
        *sparse.RAGGED,
        *sparse.OPS,
        *strings.OPS,
        *sparse.LOOKUP_TABLES,
    ]
) - {"Bucketize"}  # among the strings, but its result has the size of its input

KINDS: Mapping[str, Ops] = {
    "arithmetic": arithmetic.OPS,
    "comparisons and choices": comparisons.OPS,
    "reductions and segments": reductions.OPS,
    "shapes": shapes.OPS,
    "arrays": arrays.OPS,
    "slices": slicing.OPS,
    "gathering and scattering": gathering.OPS,
    "matrices": matrices.OPS,
    "Fourier transforms and complex numbers": matrices.FOURIER,
    "neural networks": activations.OPS,
    "convolutions and pools": convolution.OPS,
    "recurrent cells": activations.RECURRENT,
    "images": convolution.IMAGES,
    "random values": random.OPS,
    "sparse tensors": sparse.OPS,
    "ragged tensors": sparse.RAGGED,
    "strings": strings.OPS,
    "lookup tables": sparse.LOOKUP_TABLES,
    "tensor arrays and lists": tensor_arrays.OPS,
}

OPS: Ops = {name: handler for ops in KINDS.values() for name, handler in ops.items()}


# Attributes that are one of a few words, with the words that are known here.
_WORDS = {
    "align": {"LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"},
    "bad_indices_policy": {"", "DEFAULT", "ERROR"},
    "data_format": {"NCDHW", "NCHW", "NDHWC", "NHWC"},
    "encoding": {""},
    "method": {"bilinear", "nearest"},
    "mode": {"REFLECT", "SYMMETRIC"},
    "padding": {"EXPLICIT", "SAME", "VALID"},
    "set_operation": {"a-b", "b-a", "intersection", "union"},
    "unit": {"BYTE", "UTF8_CHAR"},
}


def write(call: Call) -> Expression:
    """The expression of a call; BadInput for an unknown op or an unknown form of one.

    An op whose arguments are Python numbers, and constants, is computed in Python if `shapes` has a
    handler for it.
    """
    for name in _WORDS.keys() & call.node.attrs.keys():
        if call.text(name) not in _WORDS[name]:
            raise call.refusal(f"its attribute {name} is {call.text(name)[:80]!r}")
    if shapes.on_host(call):
        written = shapes.HOST[call.node.op](call)
        if written is not None:
            return written
    handler = OPS.get(call.node.op)
    if handler is None:
        raise call.refusal("it is not among the ops that are known here")
    if callable(handler):
        return handler(call)
    alone = all(value.is_literal for value in call.args)
    arguments = [_Argument(value, alone) for value in call.args]
    try:
        if isinstance(handler, str):
            return handler.format(*arguments)
        return handler._replace(text=handler.text.format(*arguments))
    except IndexError:
        raise call.refusal(f"it has {len(call)} inputs; the graph is damaged") from None


_FORMS = {"n": number, "s": sizes, "e": spread}


class _Argument:
    """An argument in an expression: see the module.

    Args:
        alone: all other arguments are literals, which Python's operators would compute without
            torch.
    """

    def __init__(self, value: Value, alone: bool) -> None:
        self._value, self._alone = value, alone

    def __format__(self, form: str) -> str:
        if form in _FORMS:
            return _FORMS[form](self._value)
        return self._value.tensor if form == "t" or self._alone else self._value.operand
