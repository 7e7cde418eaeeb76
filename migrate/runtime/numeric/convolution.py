"""Convolutions and pools over images as TensorFlow lays them out.

x        [batch, height, width, channels]; with channels=1, [batch, channels, height, width]
kernel   [height, width, in, out]
padding  "VALID": none. "SAME": as much as makes the output ceil(size / stride) large, an odd one
         more at the end, which torch's "same" does not do with strides. Or (top, bottom, left,
         right)
"""

from __future__ import annotations

import math
from typing import Any, List, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

Pair = Tuple[int, int]
Padding = Union[str, Tuple[int, int, int, int]]


def conv2d(
    x: Tensor,
    kernel: Tensor,
    strides: Pair = (1, 1),
    padding: Padding = "VALID",
    dilation: Pair = (1, 1),
    channels: int = 3,
) -> Tensor:
    """The convolution of x; of groups of its channels, where the kernel has fewer inputs."""
    image = _channels_first(x, channels)
    groups = image.shape[1] // kernel.shape[2]
    padded = _padded(image, kernel.shape[:2], strides, padding, dilation)
    weight = kernel.permute(3, 2, 0, 1)
    result = functional.conv2d(padded, weight, None, strides, 0, dilation, groups)
    return _as_given(result, channels)


def depthwise_conv2d(
    x: Tensor,
    kernel: Tensor,
    strides: Pair = (1, 1),
    padding: Padding = "VALID",
    dilation: Pair = (1, 1),
    channels: int = 3,
) -> Tensor:
    """The convolution of each channel with kernels of its own. kernel: [height, width, channels,
    multiplier]."""
    height, width, count, multiplier = kernel.shape
    whole = kernel.reshape(height, width, 1, count * multiplier)
    return conv2d(x, whole, strides, padding, dilation, channels)


def conv2d_transpose(
    x: Tensor,
    kernel: Tensor,
    size: Sequence[int],
    strides: Pair = (1, 1),
    padding: Padding = "VALID",
    dilation: Pair = (1, 1),
    channels: int = 3,
) -> Tensor:
    """What a convolution of an image of shape `size` passes back to the image. kernel: [height,
    width, out, in]."""
    image = _channels_first(x, channels)
    sizes = [size[2], size[3]] if channels == 1 else [size[1], size[2]]
    widths = _widths(sizes, kernel.shape[:2], strides, padding, dilation)
    whole = functional.conv_transpose2d(
        image, kernel.permute(3, 2, 0, 1), None, strides, dilation=dilation
    )
    (top, bottom), (left, right) = widths
    missing = [sizes[0] + top + bottom - whole.shape[2], sizes[1] + left + right - whole.shape[3]]
    whole = functional.pad(whole, (0, max(missing[1], 0), 0, max(missing[0], 0)))
    return _as_given(whole[:, :, top : top + sizes[0], left : left + sizes[1]], channels)


def max_pool2d(
    x: Tensor,
    window: Pair,
    strides: Pair = (1, 1),
    padding: Padding = "VALID",
    channels: int = 3,
) -> Tensor:
    """The largest value of each window."""
    image = _channels_first(x, channels)
    lowest = -float("inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    padded = _padded(image, window, strides, padding, (1, 1), lowest)
    return _as_given(functional.max_pool2d(padded, window, strides), channels)


def avg_pool2d(
    x: Tensor,
    window: Pair,
    strides: Pair = (1, 1),
    padding: Padding = "VALID",
    channels: int = 3,
) -> Tensor:
    """The mean of each window, of what of it lies in the image."""
    image = _channels_first(x, channels)
    padded = _padded(image, window, strides, padding, (1, 1))
    if padded.shape == image.shape:
        return _as_given(functional.avg_pool2d(image, window, strides), channels)
    inside = torch.ones_like(image[:1, :1])
    inside = _padded(inside, window, strides, padding, (1, 1))
    sums, counts = (
        functional.avg_pool2d(one, window, strides, divisor_override=1) for one in (padded, inside)
    )
    return _as_given(sums / counts, channels)


def space_to_batch(x: Tensor, block: Sequence[int], paddings: Any) -> Tensor:
    """Every `block`-th place of an image as an image of its own; x: [batch, *places, ...]."""
    count = len(block)
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    widths = [0] * 2 * (x.ndim - 1 - count) + [width for pair in reversed(pairs) for width in pair]
    x = functional.pad(x, widths)
    rest = list(x.shape[1 + count :])
    inner = [part for size, step in zip(x.shape[1:], block) for part in (size // step, step)]
    whole = x.reshape(x.shape[0], *inner, *rest)
    steps, places = range(2, 2 + 2 * count, 2), range(1, 1 + 2 * count, 2)
    order = [*steps, 0, *places, *range(1 + 2 * count, whole.ndim)]
    return whole.permute(order).reshape(-1, *inner[::2], *rest)


def batch_to_space(x: Tensor, block: Sequence[int], crops: Any) -> Tensor:
    """The inverse of `space_to_batch`."""
    count, pieces = len(block), math.prod(block)
    places, rest = list(x.shape[1 : 1 + count]), list(x.shape[1 + count :])
    whole = x.reshape(*block, x.shape[0] // pieces, *places, *rest)
    pairs = [axis for k in range(count) for axis in (count + 1 + k, k)]
    order = [count, *pairs, *range(1 + 2 * count, whole.ndim)]
    sizes = [size * step for size, step in zip(places, block)]
    whole = whole.permute(order).reshape(-1, *sizes, *rest)
    limits = crops.tolist() if isinstance(crops, Tensor) else crops
    inside = [slice(first, size - last) for size, (first, last) in zip(sizes, limits)]
    return whole[(slice(None), *inside)]


def _channels_first(x: Tensor, channels: int) -> Tensor:
    return x if channels == 1 else x.permute(0, 3, 1, 2)


def _as_given(x: Tensor, channels: int) -> Tensor:
    return x if channels == 1 else x.permute(0, 2, 3, 1)


def _padded(
    image: Tensor,
    window: Sequence[int],
    strides: Pair,
    padding: Padding,
    dilation: Pair,
    value: float = 0,
) -> Tensor:
    (top, bottom), (left, right) = _widths(image.shape[2:], window, strides, padding, dilation)
    if not (top or bottom or left or right):
        return image
    return functional.pad(image, (left, right, top, bottom), value=value)


def _widths(
    sizes: Sequence[int], window: Sequence[int], strides: Pair, padding: Padding, dilation: Pair
) -> List[Pair]:
    """How much is added before and after the height and the width."""
    if not isinstance(padding, str):
        return [padding[:2], padding[2:]]
    if padding == "VALID":
        return [(0, 0), (0, 0)]
    return [_same(*one) for one in zip(sizes, window, strides, dilation)]


def _same(size: int, window: int, stride: int, dilation: int) -> Pair:
    count = -(-size // stride)
    total = max((count - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2
