"""Random values: of the same distributions as TensorFlow's, by torch's generator; never the same
values."""

from __future__ import annotations

from migrate.model.ops.arguments import number, sizes
from migrate.model.ops.values import Call, Many, Ops, by, torch_type


def integers(call: Call) -> str:
    """`torch.randint(0, 10, (4, 8), dtype=torch.int32)`"""
    dtype = call.dtype("Tout")
    bounds = f"{number(call[1])}, {number(call[2])}"
    return f"torch.randint({bounds}, {sizes(call[0])}, dtype={torch_type(dtype)})"


def multinomial(call: Call) -> str:
    """`torch.multinomial(torch.softmax(logits, -1), 4, replacement=True)`"""
    drawn = f"torch.softmax({call[0].tensor}, -1), {number(call[1])}, replacement=True"
    brought = "" if call.dtype("output_dtype", "int64") == "int64" else ".int()"
    return f"torch.multinomial({drawn}){brought}"


def _candidates(call: Call, function: str) -> Many:
    count, limit = call.integer("num_sampled"), call.integer("range_max")
    unique = call.flag("unique")
    if unique and count > limit:
        raise call.refusal(f"it samples {count} different classes, of {limit}")
    return Many(f"runtime.{function}({call[0].tensor}, {count}, {unique}, {limit})", 3)


def _drawn(call: Call, function: str) -> str:
    dtype = call.dtype("dtype")
    more = "" if dtype == "float32" else f", dtype={torch_type(dtype)}"
    return f"{function}({sizes(call[0])}{more})"


OPS: Ops = {
    "LogUniformCandidateSampler": by(
        _candidates,
        "log_uniform_candidates",
        said="`runtime.log_uniform_candidates(classes, 64, True, 1000)`: sampled classes, and how "
        "often each of `classes` and of them is expected",
    ),
    "Multinomial": multinomial,
    "RandomShuffle": "runtime.shuffle({0:t})",
    "RandomStandardNormal": by(_drawn, "torch.randn", said="`torch.randn((4, 8))`"),
    "RandomUniform": by(_drawn, "torch.rand", said="`torch.rand((4, 8))`"),
    "RandomUniformInt": integers,
    "TruncatedNormal": by(
        _drawn, "runtime.truncated_normal", said="`runtime.truncated_normal((4, 8))`"
    ),
    "UniformCandidateSampler": by(
        _candidates,
        "uniform_candidates",
        said="`runtime.uniform_candidates(classes, 64, True, 1000)`: likewise",
    ),
}
