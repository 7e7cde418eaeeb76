"""How many values an op computes from constants, estimated before it runs.

    numbers    torch computes the sizes: each of its ops runs on the device "meta" first, on tensors
               that have sizes and no values. An op whose result's size depends on values has no
               "meta" kernel: `_BY_VALUES` has its size. Other ops without such a kernel return no
               more than their inputs
    text, and ops of `registry.DYNAMIC_OPS`
               at most the product of their arguments, their integers and their attributes. That
               overestimates most ops by far, and underestimates none

All estimates are taken from one budget, since a small op may occur a million times.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Dict, Mapping

import numpy

from migrate.model.ops.registry import DYNAMIC_OPS
from migrate.model.ops.values import STRINGS, Call

MOST = 1 << 24  # values of one intermediate result
_MOST_OF_ALL = 1 << 26
_MOST_GUESSED = 1 << 20
# An op whose sizes and numbers have at most this product makes no more than MOST values: its
# square, as where a vector becomes a diagonal.
_SMALL = 1 << 12
_WIDTHS = ("precision", "width")  # integer attributes that lengthen text


class TooMuch(Exception):
    """An op would make more values of constants than are computed while a model is converted.

    Attributes:
        values: how many; 0 if all ops together would make too many.
    """

    def __init__(self, values: int = 0) -> None:
        super().__init__(values)
        self.values = values


class Room:
    """The budget for computing the constants of one graph."""

    def __init__(self) -> None:
        self._left = _MOST_OF_ALL

    def take(self, values: int) -> None:
        """Raises TooMuch unless there is room for that many more values."""
        if values > MOST:
            raise TooMuch(values)
        self._left -= values
        if self._left < 0:
            raise TooMuch

    def of(self, call: Call) -> Any:
        """A context in which the expression of a call is evaluated.

        Raises:
            TooMuch: at once, or while it is evaluated.
        """
        self.take(sum(arg.constant.size for arg in call.args if arg.constant is not None))
        guessed = call.node.op in DYNAMIC_OPS or any(arg.kind == STRINGS for arg in call.args)
        if guessed and _at_most(call) > _MOST_GUESSED:
            raise TooMuch
        return _estimating()(self.take)


def _at_most(call: Call) -> int:
    """An upper bound on the values and letters of a dynamic op, or of one that works on text."""
    factors = [1 + len(value) for name, value in call.node.attrs.items() if name[:1] != "_"]
    factors = [max(factors, default=1), *(1 + abs(call.integer(name)) for name in _WIDTHS)]
    for arg in call.args:
        if arg.constant is None or not arg.constant.size:
            continue
        if arg.constant.dtype == object:
            factors.append(sum(1 + len(text) for text in arg.constant.reshape(-1)))
        else:
            counts = arg.constant.dtype.kind in "iu"
            factors += [arg.constant.size, *(map(_count, arg.constant.flat) if counts else ())]
        # Enough to refuse: the product of all may be an integer of any length.
        if math.prod(factors) > _MOST_GUESSED:
            break
    return math.prod(factors)


def _count(number: numpy.integer) -> int:
    return max(1, abs(int(number)))


@functools.lru_cache(maxsize=None)
def _estimating() -> Callable[[Callable[[int], None]], Any]:
    """The class of the contexts of `Room.of`; made on the first call, since it imports torch."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Estimating(TorchDispatchMode):
        """Takes the size of each torch op's result from the budget before the op runs."""

        def __init__(self, take: Callable[[int], None]) -> None:
            super().__init__()
            self._take = take

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # else torch imports its whole compiler, only to disable it here

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self._take(_estimate(func, args, kwargs or {}))
            return func(*args, **(kwargs or {}))

    return Estimating


# The sizes of results that depend on the values of arguments.
_BY_VALUES: Dict[str, Callable[..., int]] = {
    "aten::bincount": lambda x, *_, **__: 1 + int(x.max()) if x.numel() else 0,
    "aten::repeat_interleave": lambda repeats, *_, **__: int(repeats.sum()),
}


def _size(argument: Any) -> int:
    """The factor by which an argument may multiply the size of an op's result."""
    if isinstance(argument, int):
        return max(1, abs(argument))
    return max(1, argument.numel()) if hasattr(argument, "numel") else 1


def _estimate(func: Any, args: Any, kwargs: Mapping[str, Any]) -> int:
    """The number of values that a torch op makes; 0 for one that returns or changes its inputs."""
    import torch
    from torch.utils._pytree import tree_leaves, tree_map_only

    schema = func._schema
    # Views and in-place ops allocate nothing.
    if all(one.alias_info is not None for one in schema.returns):
        return 0
    by_values = _BY_VALUES.get(schema.name)
    if by_values is not None:
        return by_values(*args, **kwargs)
    given = [_size(one) for one in tree_leaves((args, dict(kwargs)))]
    if math.prod(given) <= _SMALL:
        return sum(given)
    meta = torch.device("meta")
    sized = tree_map_only(torch.Tensor, lambda one: one.to(meta), (args, dict(kwargs)))
    # An op that makes a tensor from numbers, such as arange, has no argument on "meta".
    if any(one.name == "device" for one in schema.arguments):
        sized[1]["device"] = meta
    try:
        made = func(*sized[0], **sized[1])
    except (NotImplementedError, RuntimeError):  # the op itself raises the error, if there is one
        return 0
    parts = made if isinstance(made, (tuple, list)) else [made]
    return sum(one.numel() for one in parts if isinstance(one, torch.Tensor))
