"""Intercepting the ops of a running module that its outputs do not show.

1. A dropout drops nothing: its rate and its input are recorded.
2. A random op returns the values that TensorFlow drew, in the order of the source.
3. The input of a returned sigmoid or softmax is recorded: the logits, from which a loss is
   computed. They cannot be recomputed from probabilities that have rounded to 0 or 1.
"""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from semisync.common.errors import BadInput
from semisync.common.sentences import some_of

ACTIVATIONS = {"LogSoftmax": "log_softmax", "Sigmoid": "sigmoid", "Softmax": "softmax"}
DRAWS = {"RandomStandardNormal": torch.randn, "RandomUniform": torch.rand}
_VIEWS = {"__getitem__", "flatten", "reshape", "squeeze", "unsqueeze", "view"}
_PRODUCTS = {"__mul__", "__rmul__", "mul", "multiply"}


class Dropped(NamedTuple):
    """A dropout: the share that it drops, the shape of its mask, and its input."""

    rate: float
    shape: Tuple[int, ...]
    source: torch.Tensor


class Listening(TorchFunctionMode):
    """Intercepts one run.

    Args:
        path: of the model, for messages.
        drawn: (op, values) of the graph's random ops, in their order; values are None if they
            cannot be fetched, and the run draws its own.

    Attributes:
        dropped: its dropouts, in their order.
    """

    def __init__(self, path: str, drawn: Sequence[Tuple[str, Optional[torch.Tensor]]]) -> None:
        super().__init__()
        self._path, self._drawn = path, list(drawn)
        self.dropped: List[Dropped] = []
        self._masks: Dict[int, int] = {}  # by the ones that a dropout was given, its number
        # By id of a result: the function, its input and the result, which keeps the id from being
        # reused.
        self._made: Dict[int, Tuple[str, Any, torch.Tensor]] = {}

    def of(self, output: torch.Tensor, activation: str) -> Optional[torch.Tensor]:
        """The input of the activation whose result is `output`, possibly reshaped; or None."""
        seen: Any = output
        while isinstance(seen, torch.Tensor):
            name, source, _ = self._made.get(id(seen), ("", None, seen))
            if name == activation:
                return source
            seen = source
        return None

    def check(self) -> None:
        """Raises BadInput if the run had fewer random ops than the graph."""
        if self._drawn:
            left = some_of(op for op, _ in self._drawn)
            raise BadInput(
                f"{self._path} does not draw at random what the graph does ({left}); draw it as "
                "the conversion wrote it, or feed what turns it off"
            )

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> Any:
        kwargs = kwargs or {}
        if function is functional.dropout:
            return self._drop(*args, **kwargs)
        result = function(*args, **kwargs)
        if function in DRAWS.values() and self._drawn:
            return self._give(function, result)
        name = getattr(function, "__name__", "")
        source = args[0] if args else kwargs.get("input")
        if result is source:  # as from flatten, if there is nothing to do
            return result
        if name in _VIEWS or name in ACTIVATIONS.values():
            self._made[id(result)] = name, source, result
        elif name in _PRODUCTS and len(args) == 2:
            for mask, other in (args, args[::-1]):
                number = self._masks.pop(id(mask), None)
                if number is not None:
                    self.dropped[number] = self.dropped[number]._replace(source=other)
        return result

    def _drop(
        self, input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> torch.Tensor:
        if training and p:
            # A dropout of ones makes a mask with a noise_shape: x is what it is multiplied by
            # later.
            if bool((input == 1).all()):
                self._masks[id(input)] = len(self.dropped)
            self.dropped.append(Dropped(p, tuple(input.shape), input))
        return input

    def _give(self, function: Any, result: torch.Tensor) -> torch.Tensor:
        op, values = self._drawn.pop(0)
        shape = result.shape if values is None else values.shape
        if DRAWS.get(op) is not function or shape != result.shape:
            raise BadInput(
                f"{self._path} draws {list(result.shape)} by torch.{function.__name__} where the "
                f"graph draws {list(shape)} by {op}; draw what the conversion wrote, in its order"
            )
        return result if values is None else values.to(result)
