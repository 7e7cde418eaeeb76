"""Neural networks: activations, normalisation, losses, recurrent cells that are one op.

A layer that is recognised as a whole becomes a module of torch.nn, without these ops. A loop of
cells is a loop of the model; BlockLSTM has its own.
"""

from __future__ import annotations

from migrate.model.ops.values import Call, Many, Ops

_OUTPUTS = {"FusedBatchNorm": 5, "FusedBatchNormV2": 5, "FusedBatchNormV3": 6}


def bias_add(call: Call) -> str:
    """`x + bias`; of channels in front `x + bias[:, None, None]`"""
    if call.string("data_format", b"NHWC") != b"NCHW":
        return f"{call[0].tensor} + {call[1].tensor}"
    if call[0].rank is None:
        return f"runtime.bias_add_channels_first({call[0].tensor}, {call[1].tensor})"
    more = ", None" * (call[0].rank - 2)
    return f"{call[0].tensor} + {call[1].tensor}[:{more}]"


def softplus(call: Call) -> str:
    """`F.softplus(x)`"""
    # from 20 on torch returns x itself, which is not yet exact in float64
    threshold = ", threshold=40" if call.dtype("T") == "float64" else ""
    return f"F.softplus({call[0].tensor}{threshold})"


def leaky_relu(call: Call) -> str:
    """`F.leaky_relu(x, 0.2)`"""
    return f"F.leaky_relu({call[0].tensor}, {call.number('alpha', 0.2)})"


def local_response_norm(call: Call) -> str:
    """`runtime.local_response_norm(x, 5, 1.0, 1.0, 0.5)`"""
    radius = call.integer("depth_radius", 5)
    numbers = [call.number("bias", 1.0), call.number("alpha", 1.0), call.number("beta", 0.5)]
    given = ", ".join(map(str, [radius, *numbers]))
    return f"runtime.local_response_norm({call[0].tensor}, {given})"


def fused_batch_norm(call: Call) -> Many:
    """`runtime.fused_batch_norm(x, scale, offset, mean, variance, 0.001)`: the outputs and the
    statistics; `training=True` takes the batch's own"""
    if call.number("exponential_avg_factor", 1.0) != 1.0:
        raise call.refusal("it keeps the averages of its statistics itself")
    given = ", ".join(value.tensor for value in call.args[:5])
    more = ", training=True" if call.flag("is_training", True) else ""
    if call.string("data_format", b"NHWC").startswith(b"NC"):
        more += ", channels=1"
    epsilon, count = call.number("epsilon", 1e-4), _OUTPUTS[call.node.op]
    more += f", outputs={count}" if count != 5 else ""
    return Many(f"runtime.fused_batch_norm({given}, {epsilon}{more})", count)


def cross_entropy(call: Call) -> Many:
    """`runtime.softmax_cross_entropy(logits, labels)`: losses, and their gradient of the logits"""
    return Many(f"runtime.softmax_cross_entropy({call[0].tensor}, {call[1].tensor})", 2)


def sparse_cross_entropy(call: Call) -> Many:
    """`runtime.sparse_softmax_cross_entropy(logits, labels)`, as above"""
    return Many(f"runtime.sparse_softmax_cross_entropy({call[0].tensor}, {call[1].tensor})", 2)


OPS: Ops = {
    "BiasAdd": bias_add,
    "BiasAddV1": "{0:t} + {1}",
    "Elu": "F.elu({0:t})",
    "FusedBatchNorm": fused_batch_norm,
    "FusedBatchNormV2": fused_batch_norm,
    "FusedBatchNormV3": fused_batch_norm,
    "LRN": local_response_norm,
    "LeakyRelu": leaky_relu,
    "LogSoftmax": "torch.log_softmax({0:t}, -1)",
    "Relu": "torch.relu({0:t})",
    "Relu6": "F.relu6({0:t})",
    "Selu": "runtime.selu({0:t})",
    "Softmax": "torch.softmax({0:t}, -1)",
    "SoftmaxCrossEntropyWithLogits": cross_entropy,
    "Softplus": softplus,
    "Softsign": "F.softsign({0:t})",
    "SparseSoftmaxCrossEntropyWithLogits": sparse_cross_entropy,
}


def lstm_cell(call: Call) -> Many:
    """`runtime.lstm_cell(x, cs, h, w, wci, wcf, wco, b)`: (i, cs, f, o, ci, co, h)"""
    return _lstm(call, "lstm_cell", 1.0, 3.0)


def block_lstm(call: Call) -> Many:
    """`runtime.lstm(length, x, cs, h, w, wci, wcf, wco, b)`: as a cell, at each step"""
    return _lstm(call, "lstm", 1.0, 3.0)


def block_lstm_v2(call: Call) -> Many:
    """`runtime.lstm(length, x, cs, h, w, wci, wcf, wco, b, forget_bias=0.0, order="ifco")`"""
    # V2 has no forget_bias, does not clip by default, and has its gates in the order i, f, c, o.
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


RECURRENT: Ops = {
    "BlockLSTM": block_lstm,
    "BlockLSTMV2": block_lstm_v2,
    "GRUBlockCell": gru_cell,
    "LSTMBlockCell": lstm_cell,
}
