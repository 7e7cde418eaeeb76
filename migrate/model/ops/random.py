"""Random values: of the same distributions as TensorFlow's, by torch's generator; never the same
values."""

from __future__ import annotations

from migrate.model.ops.arguments import number, sizes
from migrate.model.ops.values import Call, Many, Ops


def uniform(call: Call) -> str:
    """`torch.rand((4, 8))`"""
    return f"torch.rand({sizes(call[0])}{_dtype(call)})"


def normal(call: Call) -> str:
    """`torch.randn((4, 8))`"""
    return f"torch.randn({sizes(call[0])}{_dtype(call)})"


def truncated_normal(call: Call) -> str:
    """`runtime.truncated_normal((4, 8))`"""
    return f"runtime.truncated_normal({sizes(call[0])}{_dtype(call)})"


def integers(call: Call) -> str:
    """`torch.randint(0, 10, (4, 8), dtype=torch.int32)`"""
    dtype = call.dtype("Tout")
    bounds = f"{number(call[1])}, {number(call[2])}"
    return f"torch.randint({bounds}, {sizes(call[0])}, dtype=torch.{dtype})"


def multinomial(call: Call) -> str:
    """`torch.multinomial(torch.softmax(logits, -1), 4, replacement=True)`"""
    drawn = f"torch.softmax({call[0].tensor}, -1), {number(call[1])}, replacement=True"
    brought = "" if call.dtype("output_dtype", "int64") == "int64" else ".int()"
    return f"torch.multinomial({drawn}){brought}"


def log_uniform_candidates(call: Call) -> Many:
    """`runtime.log_uniform_candidates(classes, 64, True, 1000)`: sampled classes, and how often
    each of `classes` and of them is expected"""
    return _candidates(call, "log_uniform_candidates")


def uniform_candidates(call: Call) -> Many:
    """`runtime.uniform_candidates(classes, 64, True, 1000)`: likewise"""
    return _candidates(call, "uniform_candidates")


def _candidates(call: Call, function: str) -> Many:
    count, limit = call.integer("num_sampled"), call.integer("range_max")
    unique = call.flag("unique")
    if unique and count > limit:
        raise call.refusal(f"it samples {count} different classes, of {limit}")
    return Many(f"runtime.{function}({call[0].tensor}, {count}, {unique}, {limit})", 3)


def _dtype(call: Call) -> str:
    dtype = call.dtype("dtype")
    return "" if dtype == "float32" else f", dtype=torch.{dtype}"


OPS: Ops = {
    "LogUniformCandidateSampler": log_uniform_candidates,
    "Multinomial": multinomial,
    "RandomShuffle": "runtime.shuffle({0:t})",
    "RandomStandardNormal": normal,
    "RandomUniform": uniform,
    "RandomUniformInt": integers,
    "TruncatedNormal": truncated_normal,
    "UniformCandidateSampler": uniform_candidates,
}
