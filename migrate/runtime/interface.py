"""The tables in model.py: its inputs, and its tensors' names in TensorFlow."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence, Tuple

from semisync.common.errors import UsageError


class Variable(NamedTuple):
    """A TensorFlow variable.

    Attributes:
        axes: the order of its axes in the module, if it differs.
        rows: the row range of a part of a partitioned variable, [first, last + 1).
    """

    name: str
    axes: Optional[Tuple[int, ...]] = None
    rows: Optional[Tuple[int, int]] = None


class Input(NamedTuple):
    """An input of a module: an entry of INPUTS in its model.py.

    Attributes:
        dtype: TensorFlow's name for it, "string" for text; None: not known.
        shape: None stands for any size, the rows first; None alone: unknown.
        tensors: its names in TensorFlow: one, or the indices, values and dense_shape of a sparse
            one.
        optional: whether the graph has a default for it.
        guessed: whether its name is a guess, from the scopes of feature columns in the graph.
    """

    dtype: Optional[str]
    shape: Optional[Sequence[Optional[int]]]
    tensors: Sequence[str]
    optional: bool = False
    guessed: bool = False

    @property
    def sparse(self) -> bool:
        """Whether it takes any number of values per row."""
        return len(self.tensors) > 1

    @property
    def own_names(self) -> Tuple[str, ...]:
        """Its names in TensorFlow's graph."""
        first, number = self.tensors[0].rpartition(":")[::2]
        # tf.sparse_placeholder names its parts NAME/indices, NAME/values and NAME/shape.
        if self.sparse:
            return (first[: -len("/indices")] if first.endswith("/indices") else first,)
        # An op's name alone is that of its first output.
        return (self.tensors[0], first) if number == "0" else (self.tensors[0],)


def by_name(inputs: Mapping[str, Any], wanted: Mapping[str, Input]) -> Dict[str, Any]:
    """`inputs` by the names in `wanted`; they may also have the names of the graph.

    Raises:
        UsageError: one without a default is missing; or an optional one is, and there is an unknown
            key that may be meant for it; or one has a number of rows that the model does not take.
    """
    found: Dict[str, Any] = {}
    unread = set(inputs)
    for name, one in wanted.items():
        key = name if name in inputs else next(filter(inputs.__contains__, one.own_names), None)
        if key is not None:
            found[name] = inputs[key]
            unread.discard(key)
    left = [name for name in wanted if name not in found]
    needed = [name for name in left if not wanted[name].optional]
    if needed or (left and unread):
        what = f"the model needs {needed[0]!r}" if needed else f"nothing reads {min(unread)!r}"
        raise UsageError(
            f"{what}: it takes {', '.join(map(repr, wanted))}, and was given "
            f"{', '.join(map(repr, inputs)) or 'nothing'}"
        )
    for name, value in found.items():
        _check_rows(name, wanted[name], value)
    return found


def _check_rows(name: str, wanted: Input, value: Any) -> None:
    due = wanted.shape[0] if wanted.shape and not wanted.sparse else None
    if due is None:
        return
    shape = getattr(value, "shape", None)
    rows = len(value) if shape is None and isinstance(value, (list, tuple)) else (shape or [due])[0]
    if rows != due:
        raise UsageError(
            f"the model takes {due} rows at a time, as its graph does, and {name!r} has {rows}; "
            f"give {due}, where there are fewer the last one again, and drop what that gives"
        )
