"""Convolutions and pools over images in TensorFlow's layout.

x        [batch, height, width, channels]; with channels=1, [batch, channels, height, width]
kernel   [height, width, in, out]
3d       functions with this suffix have a depth before the height
padding  "VALID": none. "SAME": enough to make the output ceil(size / stride) large, an odd one
         more at the end, which torch's "same" does not do with strides. Or (top, bottom, left,
         right)
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.nn import functional

Pair = Tuple[int, int]
Places = Tuple[int, ...]  # a number per axis of the image
Padding = Union[str, Tuple[int, ...]]

# torch's functions, by how many axes an image has
_CONVOLUTIONS: Dict[int, Any] = {2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED: Dict[int, Any] = {2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
_LARGEST: Dict[int, Any] = {2: functional.max_pool2d, 3: functional.max_pool3d}
_MEANS: Dict[int, Any] = {2: functional.avg_pool2d, 3: functional.avg_pool3d}


def conv2d(
    x: Tensor,
    kernel: Tensor,
    strides: Places = (1, 1),
    padding: Padding = "VALID",
    dilation: Places = (),
    channels: int = 3,
) -> Tensor:
    """The convolution of x; of groups of its channels, if the kernel has fewer inputs."""
    image, dilation = _channels_first(x, channels), dilation or (1,) * len(strides)
    groups = image.shape[1] // kernel.shape[-2]
    padded = _padded(image, kernel.shape[:-2], strides, padding, dilation)
    convolve = _CONVOLUTIONS[len(strides)]
    return _as_given(
        convolve(padded, _weight(kernel), None, strides, 0, dilation, groups), channels
    )


def depthwise_conv2d(
    x: Tensor,
    kernel: Tensor,
    strides: Places = (1, 1),
    padding: Padding = "VALID",
    dilation: Places = (),
    channels: int = 3,
) -> Tensor:
    """The convolution of each channel with kernels of its own.

    Args:
        kernel: [height, width, channels, multiplier].
    """
    height, width, count, multiplier = kernel.shape
    whole = kernel.reshape(height, width, 1, count * multiplier)
    return conv2d(x, whole, strides, padding, dilation, channels)


def conv2d_transpose(
    x: Tensor,
    kernel: Tensor,
    size: Sequence[int],
    strides: Places = (1, 1),
    padding: Padding = "VALID",
    dilation: Places = (),
    channels: int = 3,
) -> Tensor:
    """The gradient of an image of shape `size` in a convolution.

    Args:
        kernel: [height, width, out, in].
    """
    image, dilation = _channels_first(x, channels), dilation or (1,) * len(strides)
    sizes = list(size[2:] if channels == 1 else size[1:-1])
    widths = _widths(sizes, kernel.shape[:-2], strides, padding, dilation)
    convolve = _TRANSPOSED[len(strides)]
    # Over the padded image, which is filled up where no window reached and then cropped.
    whole = convolve(image, _weight(kernel), None, strides, dilation=dilation)
    ends = [first + one + last for one, (first, last) in zip(sizes, widths)]
    more = [(0, max(end - have, 0)) for end, have in zip(ends, whole.shape[2:])]
    whole = functional.pad(whole, _backwards(more))
    inside = [slice(first, first + one) for one, (first, _) in zip(sizes, widths)]
    return _as_given(whole[(slice(None), slice(None), *inside)], channels)


def max_pool2d(
    x: Tensor,
    window: Places,
    strides: Places = (1, 1),
    padding: Padding = "VALID",
    channels: int = 3,
) -> Tensor:
    """The largest value of each window."""
    image = _channels_first(x, channels)
    # The padding must not win; torch's own padding is at most half a window.
    lowest = -float("inf") if x.dtype.is_floating_point else torch.iinfo(x.dtype).min
    padded = _padded(image, window, strides, padding, (1,) * len(window), lowest)
    return _as_given(_LARGEST[len(window)](padded, window, strides), channels)


def avg_pool2d(
    x: Tensor,
    window: Places,
    strides: Places = (1, 1),
    padding: Padding = "VALID",
    channels: int = 3,
) -> Tensor:
    """The mean of each window's part within the image."""
    image = _channels_first(x, channels)
    mean, dilation = _MEANS[len(window)], (1,) * len(window)
    padded = _padded(image, window, strides, padding, dilation)
    if padded.shape == image.shape:
        return _as_given(mean(image, window, strides), channels)
    # The number of pixels in a window is the same for all images and channels.
    inside = torch.ones_like(image[:1, :1])
    inside = _padded(inside, window, strides, padding, dilation)
    sums, counts = (mean(one, window, strides, divisor_override=1) for one in (padded, inside))
    return _as_given(sums / counts, channels)


# The number of strides and window sizes decides between the two.
conv3d, conv3d_transpose = conv2d, conv2d_transpose
max_pool3d, avg_pool3d = max_pool2d, avg_pool2d


def space_to_batch(x: Tensor, block: Sequence[int], paddings: Any) -> Tensor:
    """Every `block`-th pixel of an image as an image of its own; x: [batch, *spatial, ...]."""
    count = len(block)
    pairs = paddings.tolist() if isinstance(paddings, Tensor) else paddings
    widths = [0] * 2 * (x.ndim - 1 - count) + [width for pair in reversed(pairs) for width in pair]
    x = functional.pad(x, widths)
    rest = list(x.shape[1 + count :])
    inner = [part for size, step in zip(x.shape[1:], block) for part in (size // step, step)]
    whole = x.reshape(x.shape[0], *inner, *rest)
    steps, places = range(2, 2 + 2 * count, 2), range(1, 1 + 2 * count, 2)
    # The place within a block varies slowest in the new batch, as in TensorFlow.
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
    return x if channels == 1 else x.movedim(-1, 1)


def _as_given(x: Tensor, channels: int) -> Tensor:
    return x if channels == 1 else x.movedim(1, -1)


def _padded(
    image: Tensor,
    window: Sequence[int],
    strides: Places,
    padding: Padding,
    dilation: Places,
    value: float = 0,
) -> Tensor:
    widths = _widths(image.shape[2:], window, strides, padding, dilation)
    if not any(map(any, widths)):
        return image
    return functional.pad(image, _backwards(widths), value=value)


def _backwards(widths: Sequence[Pair]) -> List[int]:
    """Padding widths in torch's order: those of the last axis first."""
    return [width for pair in reversed(widths) for width in pair]


def _weight(kernel: Tensor) -> Tensor:
    return kernel.permute(-1, -2, *range(kernel.ndim - 2))


def _widths(
    sizes: Sequence[int], window: Sequence[int], strides: Places, padding: Padding, dilation: Places
) -> List[Pair]:
    """How much is added before and after each axis."""
    if not isinstance(padding, str):
        return list(zip(padding[::2], padding[1::2]))
    if padding == "VALID":
        return [(0, 0)] * len(strides)
    return [_same(*one) for one in zip(sizes, window, strides, dilation)]


def _same(size: int, window: int, stride: int, dilation: int) -> Pair:
    count = -(-size // stride)
    total = max((count - 1) * stride + (window - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2
