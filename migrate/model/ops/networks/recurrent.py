"""Recurrent cells that are one op. A loop of them is a loop of the model; BlockLSTM has its own."""

from __future__ import annotations

from migrate.model.ops.values import Call, Many, Ops


def lstm_cell(call: Call) -> Many:
    """`runtime.lstm_cell(x, cs, h, w, wci, wcf, wco, b)`: (i, cs, f, o, ci, co, h)"""
    return _lstm(call, "lstm_cell", 1.0, 3.0)


def block_lstm(call: Call) -> Many:
    """`runtime.lstm(length, x, cs, h, w, wci, wcf, wco, b)`: as a cell, at each step"""
    return _lstm(call, "lstm", 1.0, 3.0)


def block_lstm_v2(call: Call) -> Many:
    """`runtime.lstm(length, x, cs, h, w, wci, wcf, wco, b, forget_bias=0.0, order="ifco")`"""
    return _lstm(call, "lstm", 0.0, 0.0, ", order='ifco'")


def gru_cell(call: Call) -> Many:
    """`runtime.gru_cell(x, h, w_ru, w_c, b_ru, b_c)`: (r, u, c, h)"""
    return Many(f"runtime.gru_cell({_given(call)})", 4)


def _lstm(call: Call, name: str, forget_bias: float, clip: float, more: str = "") -> Many:
    bias = call.number("forget_bias", forget_bias)
    clip = call.number("cell_clip", clip)
    more += f", forget_bias={bias}" if bias != 1 else ""
    more += f", clip={clip}" if clip > 0 else ""
    more += ", peepholes=True" if call.flag("use_peephole") else ""
    return Many(f"runtime.{name}({_given(call)}{more})", 7)


def _given(call: Call) -> str:
    return ", ".join(value.tensor for value in call.args)


OPS: Ops = {
    "BlockLSTM": block_lstm,
    "BlockLSTMV2": block_lstm_v2,
    "GRUBlockCell": gru_cell,
    "LSTMBlockCell": lstm_cell,
}
