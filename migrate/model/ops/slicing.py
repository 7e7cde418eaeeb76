"""Slices: Python's own, with the masks of StridedSlice read back."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Union

from migrate.model.ops.arguments import elements
from migrate.model.ops.values import STRINGS, Call, Ops

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


class Part(NamedTuple):
    """A slice of one axis: first:last:step; "" for an end that is open."""

    first: str
    last: str
    step: int

    def __str__(self) -> str:
        return f"{self.first}:{self.last}" + (f":{self.step}" if self.step != 1 else "")

    @property
    def text(self) -> str:
        """The slice as an expression outside of brackets."""
        return f"slice({self.first or None}, {self.last or None}, {self.step})"


def strided_slice(call: Call) -> str:
    """`x[:, 0, 1:n:2, None]`"""
    items = slices(call)
    if items is None:
        given = "".join(f", {name}={call.integer(name)}" for name in _MASKS if call.integer(name))
        bounds = ", ".join(value.tensor for value in call.args[1:])
        return f"runtime.strided_slice({call[0].tensor}, {bounds}{given})"
    backwards = any(isinstance(item, Part) and item.step < 0 for item in items)
    # torch has no slices with a negative step.
    if backwards and call[0].kind != STRINGS:
        objects = ", ".join(item.text if isinstance(item, Part) else item for item in items)
        return f"runtime.sliced({call[0].tensor}, ({objects},))"
    return _bracketed(call[0].tensor, list(map(str, items)))


def slices(call: Call) -> Optional[List[Union[str, Part]]]:
    """The content of the brackets, axis by axis; None where it is not known."""
    begins, ends = elements(call[1]), elements(call[2])
    if begins is None or ends is None or call[3].constant is None:
        return None
    begin, end, ellipsis, new, single = (call.integer(name) for name in _MASKS)
    items: List[Union[str, Part]] = []
    for axis, step in enumerate(call.integers(3)):
        bit = 1 << axis
        # TensorFlow's order where several masks have the bit (core/util/strided_slice_op.cc).
        if ellipsis & bit:
            items.append("...")
        elif new & bit:
            items.append("None")
        elif single & bit:
            items.append(begins[axis])
        else:
            first = "" if begin & bit or (begins[axis] == "0" and step > 0) else begins[axis]
            items.append(Part(first, "" if end & bit else ends[axis], step))
    return items


def slice_(call: Call) -> str:
    """`x[:, 2:5]`; a slice of which the graph does not tell whether it fits is checked"""
    text, begins, counts = call[0].tensor, elements(call[1]), elements(call[2])
    if begins is None or counts is None or call[0].kind == STRINGS:
        return f"runtime.checked_slice({text}, {call[1].tensor}, {call[2].tensor})"
    items = []
    for axis, (begin, count) in enumerate(zip(begins, counts)):
        size = call[0].shape[axis] if call[0].shape is not None else None
        if begin == "0" and count == "-1":
            items.append(":")
        elif begin.isdecimal() and count == "-1" and size is not None and int(begin) <= size:
            items.append(f"{begin}:")
        elif begin.isdecimal() and count.isdecimal() and size is not None:
            if int(begin) + int(count) > size:
                raise call.refusal(f"it takes {count} from {begin} on of {size} along axis {axis}")
            last = int(begin) + int(count)
            items.append(":" if count == str(size) else f"{'' if begin == '0' else begin}:{last}")
        else:
            return f"runtime.checked_slice({text}, ({', '.join(begins)},), ({', '.join(counts)},))"
    return _bracketed(text, items)


def _bracketed(text: str, items: List[str]) -> str:
    while items and items[-1] == ":":
        items.pop()
    return f"{text}[{', '.join(items)}]" if items else text


OPS: Ops = {
    "Slice": slice_,
    "StridedSlice": strided_slice,
}
