"""Room for the rows that tables by raw id add: it doubles when it is full.

So adding a row takes amortised constant time, whatever the size of the table.
"""

from __future__ import annotations

from typing import Any, Dict

from torch import Tensor


class Room:
    """Capacity of tensors, by name: each is the first rows of a larger one that is not shared."""

    def __init__(self) -> None:
        self._larger: Dict[Any, Tensor] = {}

    def resized(self, name: Any, tensor: Tensor, rows: int, room: int = 0) -> Tensor:
        """The tensor [n, ...] with `rows`, any values in new ones, and room for `room`."""
        larger, room = self._larger.get(name), max(rows, room)
        own = tensor[:rows]
        if larger is None or len(larger) < room or not _is_first(own, larger):
            larger = tensor.new_empty((max(room, 2 * len(own)), *tensor.shape[1:]))
            larger[: len(own)] = own
            self._larger[name] = larger
        return larger[:rows]

    def without(self, name: Any, tensor: Tensor) -> Tensor:
        """The tensor outside of the larger one, for saving: torch would save all of that."""
        larger = self._larger.pop(name, None)
        return tensor if larger is None or len(larger) == len(tensor) else tensor.clone()


def _is_first(own: Tensor, larger: Tensor) -> bool:
    """Whether a tensor is the first rows of a larger one; an empty tensor has no address."""
    where = own.data_ptr() if len(own) else larger.data_ptr()
    return own.device == larger.device and where == larger.data_ptr()
