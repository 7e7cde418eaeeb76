"""Resizing and cropping of images. x: [batch, height, width, channels].

Source: tensorflow/core/kernels/image
"""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import Tensor

from migrate.runtime.numeric.axes import integers
from semisync.common.errors import BadInput


def resize_bilinear(
    x: Tensor, size: Any, align_corners: bool = False, half_pixels: bool = False
) -> Tensor:
    """x resized, each value interpolated between its four neighbours; float32."""
    x = x.float()
    for axis, length in zip((1, 2), _sizes(size)):
        if length == x.shape[axis] and not align_corners:
            continue
        place = _places(x.shape[axis], length, align_corners, half_pixels)
        x = _between(x, place, axis)
    return x


def resize_nearest(
    x: Tensor, size: Any, align_corners: bool = False, half_pixels: bool = False
) -> Tensor:
    """x resized, each value from its nearest neighbour."""
    for axis, length in zip((1, 2), _sizes(size)):
        place = torch.arange(length, dtype=torch.float32)
        place = (place + 0.5 if half_pixels else place) * _scale(
            x.shape[axis], length, align_corners
        )
        # TensorFlow rounds with align_corners, half up, and else cuts off.
        nearest = torch.floor(place + 0.5 if align_corners else place).long()
        x = x.index_select(axis, nearest.clamp(0, x.shape[axis] - 1).to(x.device))
    return x


def resize_area(x: Tensor, size: Any) -> Tensor:
    """x resized, each value the mean of the area that it covers; float32."""
    x = x.float()
    for axis, length in zip((1, 2), _sizes(size)):
        scale = _scale(x.shape[axis], length, False)
        first = torch.arange(length, dtype=torch.float32).unsqueeze(1) * scale
        place = torch.arange(x.shape[axis], dtype=torch.float32)
        shares = torch.minimum(first + scale, place + 1) - torch.maximum(first, place)
        x = torch.tensordot(x, (shares.clamp(min=0) / scale).to(x.device), ([axis], [1])).movedim(
            -1, axis
        )
    return x


def crop_and_resize(
    x: Tensor, boxes: Tensor, images: Tensor, size: Any, nearest: bool, beside: float
) -> Tensor:
    """Boxes of images, [n, 4] as (y1, x1, y2, x2) of 0 to 1, each in the same size; `beside`
    outside of the image.

    Args:
        images: the image of each box.
    """
    if ((images < 0) | (images >= len(x))).any():
        raise BadInput(f"a box is of an image outside of 0 to {len(x) - 1}")
    x, found = x.float(), []
    places = [
        _of_boxes(boxes[:, first], boxes[:, first + 2], x.shape[first + 1], length)
        for first, length in zip((0, 1), _sizes(size))
    ]
    for number, (rows, columns) in enumerate(zip(*places)):
        image = x[int(images[number])]
        for axis, place in enumerate((rows, columns)):
            last = image.shape[axis] - 1
            inside = ((place >= 0) & (place <= (x.shape[1 + axis] - 1))).reshape(
                [-1 if axis == one else 1 for one in range(3)]
            )
            place = place.clamp(0, last)
            if nearest:
                image = image.index_select(axis, torch.floor(place + 0.5).long())
            else:
                image = _between(image, place, axis)
            image = torch.where(inside, image, beside)
        found.append(image)
    shape = (0, *_sizes(size), x.shape[3])
    return torch.stack(found) if found else x.new_zeros(shape)


def depth_to_space(x: Tensor, block: int) -> Tensor:
    """Channels moved into space: [batch, block height, block width, channels / block^2]."""
    batch, height, width, channels = x.shape
    whole = x.reshape(batch, height, width, block, block, channels // block**2)
    return whole.permute(0, 1, 3, 2, 4, 5).reshape(batch, height * block, width * block, -1)


def space_to_depth(x: Tensor, block: int) -> Tensor:
    """The inverse of `depth_to_space`."""
    batch, height, width, channels = x.shape
    whole = x.reshape(batch, height // block, block, width // block, block, channels)
    return whole.permute(0, 1, 3, 2, 4, 5).reshape(
        batch, height // block, width // block, channels * block**2
    )


def _sizes(size: Any) -> Tuple[int, int]:
    height, width = integers(size)
    if min(height, width) <= 0:
        raise BadInput(f"an image cannot be resized to {height} x {width}")
    return height, width


def _scale(size: int, length: int, align_corners: bool) -> Tensor:
    """How many old pixels one new pixel covers."""
    over = (size - 1, length - 1) if align_corners and length > 1 else (size, length)
    return torch.tensor(over[0], dtype=torch.float32) / over[1]


def _places(size: int, length: int, align_corners: bool, half_pixels: bool) -> Tensor:
    """The positions of the new pixels in the old image."""
    place = torch.arange(length, dtype=torch.float32)
    scale = _scale(size, length, align_corners)
    return (place + 0.5) * scale - 0.5 if half_pixels else place * scale


def _between(x: Tensor, place: Tensor, axis: int) -> Tensor:
    """The values at positions along an axis, linearly interpolated."""
    place = place.to(x.device)
    below = place.floor()
    share = (place - below).reshape([-1 if axis == one else 1 for one in range(x.ndim)])
    last = x.shape[axis] - 1
    lower = x.index_select(axis, below.long().clamp(0, last))
    upper = x.index_select(axis, place.ceil().long().clamp(0, last))
    return lower + (upper - lower) * share


def _of_boxes(first: Tensor, last: Tensor, size: int, length: int) -> Tensor:
    """The positions of each box's pixels, [boxes, length]."""
    if length == 1:
        return (0.5 * (first + last) * (size - 1)).unsqueeze(1)
    scale = (last - first) * (size - 1) / (length - 1)
    steps = torch.arange(length, dtype=torch.float32, device=first.device)
    return (first * (size - 1)).unsqueeze(1) + steps * scale.unsqueeze(1)
