"""Images: resizing, cropping, and moving space into channels and back."""

from __future__ import annotations

from migrate.model.ops.arguments import plain
from migrate.model.ops.values import Call, Ops, by, literal


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


OPS: Ops = {
    "CropAndResize": crop_and_resize,
    "DepthToSpace": by(_blocks, "depth_to_space", said="`runtime.depth_to_space(x, 2)`"),
    "ResizeArea": by(_resized, "area", said="`runtime.resize_area(x, (32, 32))`"),
    "ResizeBilinear": by(_resized, "bilinear", said="`runtime.resize_bilinear(x, (32, 32))`"),
    "ResizeNearestNeighbor": by(_resized, "nearest", said="`runtime.resize_nearest(x, (32, 32))`"),
    "SpaceToDepth": by(_blocks, "space_to_depth", said="`runtime.space_to_depth(x, 2)`"),
}
