"""Convolutions, pools and images. Kernels stay in TensorFlow's layout, [height, width, in, out]; an
image is [batch, height, width, channels] unless `data_format` puts the channels in front."""

from __future__ import annotations

from typing import List

from migrate.model.ops.arguments import plain, sizes
from migrate.model.ops.values import Call, Handler, Ops, by, listed, literal


def convolve(call: Call) -> str:
    """`runtime.conv2d(x, kernel, (1, 1), "SAME")`, `conv3d`"""
    return f"runtime.conv{_axes(call)}d({call[0].tensor}, {call[1].tensor}, {_window(call)})"


def depthwise_conv2d(call: Call) -> str:
    """`runtime.depthwise_conv2d(x, kernel, (1, 1), "SAME")`"""
    return f"runtime.depthwise_conv2d({call[0].tensor}, {call[1].tensor}, {_window(call)})"


def transposed(call: Call) -> str:
    """`runtime.conv2d_transpose(x, kernel, size, (1, 1), "SAME")`, `conv3d_transpose`"""
    # Conv2DBackpropInput takes (sizes, kernel, x).
    given = f"{call[2].tensor}, {call[1].tensor}, {sizes(call[0])}"
    return f"runtime.conv{_axes(call)}d_transpose({given}, {_window(call)})"


def pool(kind: str) -> Handler:
    """The handler of pools of this kind."""

    def write(call: Call) -> str:
        window = _spatial(call, "ksize")
        return f"runtime.{kind}{_axes(call)}d({call[0].tensor}, {window}, {_window(call)})"

    return by(write, said=f'`runtime.{kind}2d(x, (2, 2), (2, 2), "VALID")`, `{kind}3d`')


def moved(name: str) -> Handler:
    """The handler of the ops around a dilated convolution."""

    def write(call: Call) -> str:
        known = call[2].constant
        pairs = call[2].tensor if known is None else str(known.tolist())
        return f"runtime.{name}({call[0].tensor}, {sizes(call[1])}, {pairs})"

    example = f"`runtime.{name}(x, (2, 2), [[0, 1], [0, 1]])`"
    return by(write, said=f"{example}, around a dilated convolution")


def _axes(call: Call) -> int:
    """How many axes an image has, without its channels."""
    return len(call.integer_list("strides")) - 2


def _window(call: Call) -> str:
    """Strides, padding, and any unusual settings."""
    padding = repr(call.text("padding"))
    if padding == "'EXPLICIT'":
        pairs = call.integer_list("explicit_paddings")
        first = 2 if _channels_first(call) else 1
        # The attribute has a pair for every axis, rows and channels included.
        padding = str(tuple(pairs[2 * first : 2 * first + 4]))
    more = ""
    dilations = call.integer_list("dilations")
    if any(dilation != 1 for dilation in dilations):
        more += f", dilation={_spatial(call, 'dilations')}"
    if _channels_first(call):
        more += ", channels=1"
    return f"{_spatial(call, 'strides')}, {padding}" + more


def _spatial(call: Call, name: str) -> str:
    """The image's axes of an attribute that has one number per axis."""
    values: List[int] = call.integer_list(name)
    expected = 5 if "3D" in call.node.op else 4
    if len(values) != expected:
        raise call.refusal(f"its attribute {name} has {len(values)} numbers, expected {expected}")
    inner = values[2:] if _channels_first(call) else values[1:-1]
    if values[0] != 1 or values[1 if _channels_first(call) else -1] != 1:
        raise call.refusal(f"its attribute {name} is {values}: it runs over rows or channels too")
    return listed(inner)


def _channels_first(call: Call) -> bool:
    return call.string("data_format", b"NHWC").startswith(b"NC")


OPS: Ops = {
    "AvgPool": pool("avg_pool"),
    "AvgPool3D": pool("avg_pool"),
    "BatchToSpaceND": moved("batch_to_space"),
    "Conv2D": convolve,
    "Conv2DBackpropInput": transposed,
    "Conv3D": convolve,
    "Conv3DBackpropInputV2": transposed,
    "DepthwiseConv2dNative": depthwise_conv2d,
    "MaxPool": pool("max_pool"),
    "MaxPool3D": pool("max_pool"),
    "SpaceToBatchND": moved("space_to_batch"),
}


def _resized(call: Call, kind: str) -> str:
    corners, half = call.flag("align_corners"), call.flag("half_pixel_centers")
    if kind == "area" and corners:
        raise call.refusal("it aligns corners")
    more = ", align_corners=True" if corners else ""
    more += ", half_pixels=True" if half else ""
    return f"runtime.resize_{kind}({call[0].tensor}, {plain(call[1])}{more})"


def crop_and_resize(call: Call) -> str:
    """`runtime.crop_and_resize(x, boxes, images, (32, 32), False, 0.0)`"""
    given = ", ".join(value.tensor for value in call.args[:3])
    nearest = call.string("method", b"bilinear") == b"nearest"
    beside = literal(call.number("extrapolation_value"))
    return f"runtime.crop_and_resize({given}, {plain(call[3])}, {nearest}, {beside})"


def _blocks(call: Call, name: str) -> str:
    if call.string("data_format", b"NHWC") != b"NHWC":
        raise call.refusal("its channels are not the last axis")
    return f"runtime.{name}({call[0].tensor}, {call.integer('block_size')})"


IMAGES: Ops = {
    "CropAndResize": crop_and_resize,
    "DepthToSpace": by(_blocks, "depth_to_space", said="`runtime.depth_to_space(x, 2)`"),
    "ResizeArea": by(_resized, "area", said="`runtime.resize_area(x, (32, 32))`"),
    "ResizeBilinear": by(_resized, "bilinear", said="`runtime.resize_bilinear(x, (32, 32))`"),
    "ResizeNearestNeighbor": by(_resized, "nearest", said="`runtime.resize_nearest(x, (32, 32))`"),
    "SpaceToDepth": by(_blocks, "space_to_depth", said="`runtime.space_to_depth(x, 2)`"),
}
