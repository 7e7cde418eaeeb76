"""TensorFlow's recurrent cells that are one op.

x        [batch, inputs], of a whole sequence [time, batch, inputs]
h, cs    [batch, units]: output and cell state, those of the step before
w, b     [inputs + units, 4 units], [4 units]: of gates i, c, f, o; in BlockLSTMV2 of i, f, c, o
wci ...  [units]: the peepholes
Source: tensorflow/core/kernels/rnn/lstm_ops.cc, gru_ops.cc
"""

from __future__ import annotations

from typing import Any, List, Tuple

import torch
from torch import Tensor


def lstm_cell(
    x: Tensor,
    cs: Tensor,
    h: Tensor,
    w: Tensor,
    wci: Tensor,
    wcf: Tensor,
    wco: Tensor,
    b: Tensor,
    forget_bias: float = 1.0,
    clip: float = -1.0,
    peepholes: bool = False,
    order: str = "icfo",
) -> Tuple[Tensor, ...]:
    """(i, cs, f, o, ci, co, h) of one step; a positive `clip` limits the cell state."""
    whole = torch.cat([x, h], 1) @ w + b
    gates = dict(zip(order, whole.chunk(4, 1)))
    i, f = gates["i"], gates["f"] + forget_bias
    if peepholes:
        i, f = i + cs * wci, f + cs * wcf
    i, f, ci = i.sigmoid(), f.sigmoid(), gates["c"].tanh()
    cs = ci * i + cs * f
    cs = cs.clamp(-clip, clip) if clip > 0 else cs
    o = (gates["o"] + cs * wco if peepholes else gates["o"]).sigmoid()
    co = cs.tanh()
    return i, cs, f, o, ci, co, o * co


def lstm(
    length: Tensor, x: Tensor, cs: Tensor, h: Tensor, *weights: Any, **settings: Any
) -> Tuple[Tensor, ...]:
    """As `lstm_cell` at each of `length` steps, [time, batch, units]; 0 at those that follow."""
    steps: List[Tuple[Tensor, ...]] = []
    for step in x[: int(length)]:
        found = lstm_cell(step, cs, h, *weights, **settings)
        cs, h = found[1], found[6]
        steps.append(found)
    zeros = torch.zeros_like(cs)
    steps += [(zeros,) * 7] * (len(x) - len(steps))
    if not steps:
        return (cs.new_zeros(0, *cs.shape),) * 7
    return tuple(map(torch.stack, zip(*steps)))


def gru_cell(
    x: Tensor, h: Tensor, w_ru: Tensor, w_c: Tensor, b_ru: Tensor, b_c: Tensor
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    """(r, u, c, h) of one step: reset and update gates, candidate, output."""
    r, u = (torch.cat([x, h], 1) @ w_ru + b_ru).sigmoid().chunk(2, 1)
    c = (torch.cat([x, h * r], 1) @ w_c + b_c).tanh()
    return r, u, c, u * h + (1 - u) * c
