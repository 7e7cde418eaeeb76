"""Convolutions and pools. Kernels stay in TensorFlow's layout, [height, width, in, out]; an image
is [batch, height, width, channels] unless `data_format` puts the channels in front."""

from __future__ import annotations

from typing import Callable, Dict, List, Union

from migrate.model.ops.arguments import sizes
from migrate.model.ops.values import Call, Host, Many


def conv2d(call: Call) -> str:
    """`runtime.conv2d(x, kernel, (1, 1), "SAME")`"""
    return f"runtime.conv2d({call[0].tensor}, {call[1].tensor}, {_window(call)})"


def depthwise_conv2d(call: Call) -> str:
    """`runtime.depthwise_conv2d(x, kernel, (1, 1), "SAME")`"""
    return f"runtime.depthwise_conv2d({call[0].tensor}, {call[1].tensor}, {_window(call)})"


def conv2d_transpose(call: Call) -> str:
    """`runtime.conv2d_transpose(x, kernel, size, (1, 1), "SAME")`"""
    given = f"{call[2].tensor}, {call[1].tensor}, {sizes(call[0])}"
    return f"runtime.conv2d_transpose({given}, {_window(call)})"


def max_pool(call: Call) -> str:
    """`runtime.max_pool2d(x, (2, 2), (2, 2), "VALID")`"""
    return f"runtime.max_pool2d({call[0].tensor}, {_spatial(call, 'ksize')}, {_window(call)})"


def average_pool(call: Call) -> str:
    """`runtime.avg_pool2d(x, (2, 2), (2, 2), "VALID")`"""
    return f"runtime.avg_pool2d({call[0].tensor}, {_spatial(call, 'ksize')}, {_window(call)})"


def space_to_batch(call: Call) -> str:
    """`runtime.space_to_batch(x, (2, 2), [[0, 1], [0, 1]])`, around a dilated convolution"""
    return f"runtime.space_to_batch({call[0].tensor}, {sizes(call[1])}, {_pairs(call)})"


def batch_to_space(call: Call) -> str:
    """`runtime.batch_to_space(x, (2, 2), [[0, 1], [0, 1]])`, around a dilated convolution"""
    return f"runtime.batch_to_space({call[0].tensor}, {sizes(call[1])}, {_pairs(call)})"


def _pairs(call: Call) -> str:
    known = call[2].constant
    return call[2].tensor if known is None else str(known.tolist())


def _window(call: Call) -> str:
    """Strides, padding, and what is not as usual."""
    padding = repr(call.string("padding").decode())
    if padding == "'EXPLICIT'":
        pairs = call.integer_list("explicit_paddings")
        first = 2 if _channels_first(call) else 1
        padding = str(tuple(pairs[2 * first : 2 * first + 4]))
    more = ""
    dilations = call.integer_list("dilations")
    if any(dilation != 1 for dilation in dilations):
        more += f", dilation={_spatial(call, 'dilations')}"
    if _channels_first(call):
        more += ", channels=1"
    return f"{_spatial(call, 'strides')}, {padding}" + more


def _spatial(call: Call, name: str) -> str:
    """The height's and the width's of an attribute that has one number per axis."""
    values: List[int] = call.integer_list(name)
    if len(values) != 4:
        raise call.refusal(f"its attribute {name} has {len(values)} numbers, expected 4")
    inner = values[2:] if _channels_first(call) else values[1:3]
    if values[0] != 1 or values[1 if _channels_first(call) else 3] != 1:
        raise call.refusal(f"its attribute {name} is {values}: it runs over rows or channels too")
    return f"({inner[0]}, {inner[1]})"


def _channels_first(call: Call) -> bool:
    return call.string("data_format", b"NHWC") == b"NCHW"


OPS: Dict[str, Union[str, Callable[[Call], Union[str, Host, Many]]]] = {
    "AvgPool": average_pool,
    "BatchToSpaceND": batch_to_space,
    "Conv2D": conv2d,
    "Conv2DBackpropInput": conv2d_transpose,
    "DepthwiseConv2dNative": depthwise_conv2d,
    "MaxPool": max_pool,
    "SpaceToBatchND": space_to_batch,
}
