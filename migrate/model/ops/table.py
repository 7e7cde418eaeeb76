"""docs/ops.md: the ops by kind, and how each is written. `python -m migrate.model.ops.table` prints
it."""

from __future__ import annotations

import re
from typing import Union

from migrate.model.ops.registry import KINDS
from migrate.model.ops.values import Expression, Handler
from semisync.common.terminal import say

_HEAD = """\
# The ops of a model

`semisync convert --model` and `migrate.load_model` write each op of a graph as Python, as this
table says; an op that is not here is refused with its node. What begins with `runtime` is a
function of `migrate.runtime`, which has TensorFlow's semantics where torch has no expression for
them. x, y, z, u and v are an op's inputs in their order, where its other arguments have no names.
The page is generated, and a test compares it with the code:

```console
$ python -m migrate.model.ops.table | head -1
# The ops of a model
```

A layer that is recognised as a whole, such as a dense one, is a module of torch instead. Branches,
loops, variables, constants and inputs are not ops here. Arithmetic on shapes is Python's:
`x.shape[0] * 2`.

What differs from TensorFlow's CPU kernels, each op being compared with them in values, types,
shapes and gradients:

- NaN: `Sign` gives 0, as TensorFlow 1 does. `Maximum`, `Minimum`, `Max` and `Min` give NaN, as
  TensorFlow 2 does. `ArgMax`, `ArgMin` and `TopKV2` take NaN for the largest value.
- An overlap of `DynamicStitch` has the gradient of the row that is kept; TensorFlow gives it to
  all.
- `SegmentSum` and its like do not check that the segments ascend.
- Random ops draw from torch's generator: the distributions are the same, the values are not.
- What tf.custom_gradient and gradient_override_map make has torch's own derivative. Training on
  from it, as from tf.nn.swish, asks the graph's gradient ops whether theirs is the same, and is
  refused where it is another, or where that cannot be told, as in a branch or a loop.
- `StatelessRandomUniform` and its like, quantised ops, most ops of images and sound are refused.
"""


def page() -> str:
    """The whole of docs/ops.md."""
    parts = [_HEAD]
    for kind, ops in KINDS.items():
        rows = [f"| `{op}` | {_written(handler)} |" for op, handler in sorted(ops.items())]
        title = kind[0].upper() + kind[1:]
        parts.append("\n".join([f"## {title}", "", "| op | written as |", "|---|---|", *rows, ""]))
    return "\n".join(parts)


def _written(handler: Union[Expression, Handler]) -> str:
    """An expression with x, y, z for its arguments; the first sentence of a function."""
    if callable(handler):
        return " ".join((handler.__doc__ or "").split()).rstrip(".").replace("|", "\\|")
    text = handler if isinstance(handler, str) else handler.text
    text = re.sub(r"\{(\d)(:\w)?\}", lambda found: "xyzuv"[int(found.group(1))], text)
    return f"`{text}`".replace("|", "\\|")


if __name__ == "__main__":
    say(*page().splitlines())
