"""Images in other sizes, parts of them, and places as channels."""

from __future__ import annotations

from typing import Callable

from migrate.model.ops.arguments import plain
from migrate.model.ops.values import Call, Ops, literal


def resize(kind: str) -> Callable[[Call], str]:
    """Another size by one of the methods."""

    def write(call: Call) -> str:
        corners, half = call.flag("align_corners"), call.flag("half_pixel_centers")
        if kind == "area" and corners:
            raise call.refusal("it aligns corners")
        more = ", align_corners=True" if corners else ""
        more += ", half_pixels=True" if half else ""
        return f"runtime.resize_{kind}({call[0].tensor}, {plain(call[1])}{more})"

    write.__doc__ = f"`runtime.resize_{kind}(x, (32, 32))`"
    return write


def crop_and_resize(call: Call) -> str:
    """`runtime.crop_and_resize(x, boxes, images, (32, 32), False, 0.0)`"""
    given = ", ".join(value.tensor for value in call.args[:3])
    nearest = call.string("method", b"bilinear") == b"nearest"
    beside = literal(call.number("extrapolation_value"))
    return f"runtime.crop_and_resize({given}, {plain(call[3])}, {nearest}, {beside})"


def depth_to_space(call: Call) -> str:
    """`runtime.depth_to_space(x, 2)`"""
    return _blocks(call, "depth_to_space")


def space_to_depth(call: Call) -> str:
    """`runtime.space_to_depth(x, 2)`"""
    return _blocks(call, "space_to_depth")


def _blocks(call: Call, name: str) -> str:
    if call.string("data_format", b"NHWC") != b"NHWC":
        raise call.refusal("its channels are not the last axis")
    return f"runtime.{name}({call[0].tensor}, {call.integer('block_size')})"


OPS: Ops = {
    "CropAndResize": crop_and_resize,
    "DepthToSpace": depth_to_space,
    "ResizeArea": resize("area"),
    "ResizeBilinear": resize("bilinear"),
    "ResizeNearestNeighbor": resize("nearest"),
    "SpaceToDepth": space_to_depth,
}
