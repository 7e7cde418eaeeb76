"""Making tensors, and changing their shape or the order of their values.

A reshape or a transposition is torch's own. TensorFlow has checks that torch lacks: that an axis to
squeeze has the size 1, and that a tensor is split into parts of one size.
"""

from __future__ import annotations

import math
from typing import List, Optional, Sequence

from migrate.graph.tensors import constant_array
from migrate.model.ops.arguments import normal, number, sizes, spread, stacked
from migrate.model.ops.values import (
    OBJECT,
    STRINGS,
    TENSOR,
    Call,
    Many,
    Ops,
    Value,
    listed,
    torch_type,
)


def reshape(call: Call) -> str:
    """`x.reshape(-1, 8)`, also where a size is computed that the others tell; `x.flatten(1)`,
    `x.unsqueeze(1)` or `x.squeeze(1)` where it does the same"""
    text, shape = call[0].tensor, call[0].shape
    if call[0].kind == STRINGS:
        return f"{text}.reshape({sizes(call[1])})"
    wanted = _packed(call) if call[1].constant is None else [*call.integers(1)]
    # [batch size, -1], as tf.layers.flatten writes it.
    if wanted == [None, -1] and len(shape or ()) > 1 and _is_batch(call):
        return f"{text}.flatten(1)"
    if wanted is None or shape is None or (None in wanted and not _is_determined(shape, wanted)):
        return f"{text}.reshape({spread(call[1])})"
    has, asked = ([-1 if size is None else size for size in one] for one in (shape, wanted))
    for method, longer, shorter in (("unsqueeze", asked, has), ("squeeze", has, asked)):
        # With two unknown sizes a new axis of 1 cannot be told from a regrouping of them.
        for axis, size in enumerate(longer) if has.count(-1) < 2 else ():
            if size == 1 and longer[:axis] + longer[axis + 1 :] == shorter:
                return f"{text}.{method}({axis})"
    return f"{text}.reshape({', '.join(map(str, asked)) or '()'})"


def identities(call: Call) -> Many:
    """`(x, y)`, as of functions with a gradient of their own, such as tf.nn.swish"""
    texts = [value.text if value.kind == OBJECT else value.tensor for value in call.args]
    return Many("(" + "".join(text + ", " for text in texts).rstrip(" ") + ")", len(texts))


def expand_dims(call: Call) -> str:
    """`x.unsqueeze(1)`"""
    method = "expand_dims" if call[0].kind == STRINGS else "unsqueeze"
    return f"{call[0].tensor}.{method}({number(call[1])})"


def squeeze(call: Call) -> str:
    """`x.squeeze(1)`"""
    axes = call.integer_list("squeeze_dims") or call.integer_list("axis")
    listed_axes = [normal(axis, call[0].rank) for axis in axes]
    if call[0].kind == STRINGS:
        return f"{call[0].tensor}.squeeze({listed_axes})"
    if not axes:
        return f"{call[0].tensor}.squeeze()"
    shape = call[0].shape
    # torch leaves an axis of another size as it is; TensorFlow refuses it, as runtime.squeeze does.
    if shape is not None and all(shape[axis] == 1 for axis in listed_axes):
        text = str(listed_axes[0]) if len(axes) == 1 else listed(listed_axes)
        return f"{call[0].tensor}.squeeze({text})"
    return f"runtime.squeeze({call[0].tensor}, {listed_axes})"


def transpose(call: Call) -> str:
    """`x.permute(1, 0, 2)`; of the last two axes `x.mT`, of a matrix `x.T`"""
    if call[0].kind == STRINGS:
        return f"{call[0].tensor}.permute({sizes(call[1])})"
    axes = [] if call[1].constant is None else call.integers(1)
    if axes[-2:] == [len(axes) - 1, len(axes) - 2] and axes[:-2] == [*range(len(axes) - 2)]:
        return f"{call[0].tensor}.{'mT' if len(axes) > 2 else 'T'}"
    return f"{call[0].tensor}.permute({spread(call[1])})"


def concat(call: Call) -> str:
    """`torch.cat([x, y], 1)`"""
    return _joined(call, call.args[:-1], call[len(call) - 1])


def concat_v1(call: Call) -> str:
    """`torch.cat([x, y], 1)`"""
    return _joined(call, call.args[1:], call[0])


def pack(call: Call) -> str:
    """`torch.stack([x, y], 1)`"""
    function = "runtime.Strings.stack" if call[0].kind == STRINGS else "torch.stack"
    return f"{function}({stacked(call.args)}, {call.integer('axis')})"


def unpack(call: Call) -> Many:
    """`x.unbind(1)`"""
    axis, count = call.integer("axis"), call.integer("num")
    if call[0].kind == STRINGS:
        return Many(f"runtime.unbind({call[0].tensor}, {axis})", count)
    return Many(f"{call[0].tensor}.unbind({axis})", count)


def split(call: Call) -> Many:
    """`x.split(4, 1)`"""
    count = call.integer("num_split")
    axis, size = _axis(call[0], call[1])
    if axis is not None and size is not None and not size % count and call[1].kind == TENSOR:
        return Many(f"{call[1].tensor}.split({size // count}, {axis})", count)
    return Many(f"runtime.split({call[1].tensor}, {count}, {number(call[0])})", count)


def split_v(call: Call) -> Many:
    """`x.split((4, 12), 1)`"""
    count = call.integer("num_split")
    known = None if call[1].constant is None else call.integers(1)
    size = _axis(call[2], call[0])[1]
    if known is not None and -1 in known:
        # The -1 itself is part of the sum.
        rest = None if size is None else size - sum(known) - 1
        known = None if rest is None or rest < 0 else [rest if n < 0 else n for n in known]
    if known is not None and call[0].kind == TENSOR:
        equal = len({*known}) == 1 and size == sum(known) > 0
        return Many(
            f"{call[0].tensor}.split({known[0] if equal else known}, {number(call[2])})", count
        )
    return Many(f"runtime.split({call[0].tensor}, {sizes(call[1])}, {number(call[2])})", count)


def tile(call: Call) -> str:
    """`x.tile(1, 4)`"""
    if call[0].kind == STRINGS:
        return f"{call[0].tensor}.tile({sizes(call[1])})"
    return f"{call[0].tensor}.tile({spread(call[1])})"


def fill(call: Call) -> str:
    """`torch.full((4, 8), 0.0, dtype=torch.float32)`"""
    if call[1].kind == STRINGS or not call[1].is_literal:
        return f"{call[1].tensor}.broadcast_to({sizes(call[0])})"
    return f"torch.full({sizes(call[0])}, {call[1]}, dtype={torch_type(call.dtype('T'))})"


def arange(call: Call) -> str:
    """`torch.arange(0, n, 1, dtype=torch.int32)`"""
    dtype = call.dtype("Tidx", "int32")
    # TensorFlow adds the step again and again (sequence_ops.cc), as runtime.arange does.
    if dtype in ("float32", "float64", "float16", "bfloat16"):
        texts = ", ".join(value.tensor for value in call.args)
        return f"runtime.arange({texts})"
    start, limit, step = (number(value) for value in call.args)
    bounds = [limit] if (start, step) == ("0", "1") else [start, limit]
    bounds += [] if step == "1" else [step]
    return f"torch.arange({', '.join(bounds)}, dtype={torch_type(dtype)})"


def linspace(call: Call) -> str:
    """`torch.linspace(0.0, 1.0, 5)`"""
    dtype = call.dtype("T")
    return f"torch.linspace({call[0]}, {call[1]}, {number(call[2])}, dtype={torch_type(dtype)})"


def one_hot(call: Call) -> str:
    """`runtime.one_hot(x, 10)`: all off for an index out of range"""
    axis = call.integer("axis", -1)
    more = "" if axis == -1 else f", axis={axis}"
    values, dtype = f", {call[2]}, {call[3]}", call.dtype("T")
    if not (call[2].is_literal and call[3].is_literal):
        values = f", {call[2].tensor}, {call[3].tensor}"
    elif values == ", 1.0, 0.0" and dtype == "float32":
        values = ""
    else:
        values += f", dtype={torch_type(dtype)}"
    return f"runtime.one_hot({call[0].tensor}, {number(call[1])}{values}{more})"


def pad(call: Call) -> str:
    """`F.pad(x, (0, 0, 1, 1))`, which lists the last axis first"""
    known = call[1].constant
    value = call[2] if len(call) > 2 else None
    if known is None or (value is not None and not value.is_literal):
        more = "" if value is None else f", {value.tensor}"
        return f"runtime.pad({call[0].tensor}, {call[1].tensor}{more})"
    if (known < 0).any():
        raise call.refusal("it pads by a negative number")
    if not known.size:
        return call[0].tensor
    widths = known[::-1].reshape(-1).tolist()
    # F.pad need not list leading axes, which come last here and are not padded.
    while len(widths) > 2 and not any(widths[-2:]):
        widths = widths[:-2]
    filled = "" if value is None else f", value={value}"
    return f"F.pad({call[0].tensor}, {listed(widths)}{filled})"


def mirror_pad(call: Call) -> str:
    """`runtime.mirror_pad(x, paddings, "reflect")`"""
    mode = call.text("mode").lower()
    paddings = call[1].text if call[1].constant is None else call[1].constant.tolist()
    return f"runtime.mirror_pad({call[0].tensor}, {paddings}, {mode!r})"


def reverse_v1(call: Call) -> str:
    """`x.flip(1)`; the axes as a vector of bools"""
    axes = [axis for axis, turned in enumerate(call.constant(1).tolist()) if turned]
    return f"{call[0].tensor}.flip({listed(axes)})"


def reverse_sequence(call: Call) -> str:
    """`runtime.reverse_sequence(x, lengths, 1)`"""
    axis, batch = call.integer("seq_dim"), call.integer("batch_dim")
    return f"runtime.reverse_sequence({call[0].tensor}, {call[1].tensor}, {axis}, {batch})"


def _packed(call: Call) -> Optional[List[Optional[int]]]:
    """The numbers that a Pack joins into a shape, None for one that is computed; None where
    another op makes it."""
    node = call.graph.nodes[call.node.inputs[1][0]]
    parts = [call.graph.nodes[name] for name, _ in node.inputs] if node.op == "Pack" else []
    found = [constant_array(call.graph, part) if part.op == "Const" else None for part in parts]
    return [None if one is None else int(one) for one in found] or None


def _is_determined(shape: Sequence[Optional[int]], wanted: Sequence[Optional[int]]) -> bool:
    """Whether the one computed size must be that of the one axis that is unknown in `shape`."""
    has, known = ([size for size in one if size is not None] for one in (shape, wanted))
    return (
        len(shape) - len(has) == len(wanted) - len(known) == 1
        and min(known, default=1) > 0
        and math.prod(has) == math.prod(known)
    )


def _is_batch(call: Call) -> bool:
    """Whether the first number of a reshape's Pack is the size of the first axis."""
    nodes = call.graph.nodes
    size = nodes[nodes[call.node.inputs[1][0]].inputs[0][0]]
    whole = nodes[size.inputs[0][0]] if size.op == "StridedSlice" else size
    bounds = [nodes[name] for name, _ in size.inputs[1:]]
    if whole.op != "Shape" or any(bound.op != "Const" for bound in bounds):
        return False
    taken = [constant_array(call.graph, bound) for bound in bounds]
    taken = [one.tolist() for one in taken if one.size == 1]
    return taken == [[0], [1], [1]] and whole.inputs[0] == call.node.inputs[0]


def _axis(axis: Value, tensor: Value) -> List[Optional[int]]:
    """An axis, counted from the front, and its size; None for either if it is not known."""
    if axis.constant is None or tensor.shape is None:
        return [None, None]
    place = normal(int(axis.constant), len(tensor.shape))
    return [place, tensor.shape[place]]


def _joined(call: Call, parts: tuple, axis: Value) -> str:
    if len(parts) == 1:
        return parts[0].tensor
    function = "runtime.Strings.concat" if parts[0].kind == STRINGS else "torch.cat"
    return f"{function}({stacked(parts)}, {number(axis)})"


OPS: Ops = {
    "BroadcastTo": "{0:t}.broadcast_to({1:s})",
    "Concat": concat_v1,
    "ConcatV2": concat,
    "ExpandDims": expand_dims,
    "Fill": fill,
    "IdentityN": identities,
    "LinSpace": linspace,
    "MirrorPad": mirror_pad,
    "OneHot": one_hot,
    "OnesLike": "torch.ones_like({0:t})",
    "Pack": pack,
    "Pad": pad,
    "PadV2": pad,
    "Range": arange,
    "Reshape": reshape,
    "Reverse": reverse_v1,
    "ReverseSequence": reverse_sequence,
    "ReverseV2": "{0:t}.flip({1:e})",
    "Roll": "{0:t}.roll({1:s}, {2:s})",
    "Split": split,
    "SplitV": split_v,
    "Squeeze": squeeze,
    "StopGradient": "{0:t}.detach()",
    "Tile": tile,
    "Transpose": transpose,
    "Unpack": unpack,
    "ZerosLike": "torch.zeros_like({0:t})",
}
