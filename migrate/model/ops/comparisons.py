"""Comparisons, logic, and the choice between two values."""

from __future__ import annotations

from migrate.model.ops.values import HOST, STRINGS, Call, Ops


def select(call: Call) -> str:
    """`torch.where(condition, x, y)`; a condition of one axis chooses rows"""
    if call[0].kind == HOST and call[0].is_literal:
        return f"{call[1].tensor} if {call[0]} else {call[2].tensor}"
    ranks = call[0].rank, call[1].rank
    if call[1].kind != STRINGS and None not in ranks and ranks[0] in (0, ranks[1]):
        return select_v2(call)
    return f"runtime.select({call[0].tensor}, {call[1].tensor}, {call[2].tensor})"


def select_v2(call: Call) -> str:
    """`torch.where(condition, x, y)`"""
    if call[1].kind == STRINGS:
        return f"runtime.where({call[0].tensor}, {call[1].tensor}, {call[2].tensor})"
    literals = call[1].is_literal and call[2].is_literal
    first = call[1].tensor if literals else call[1].operand
    return f"torch.where({call[0].tensor}, {first}, {call[2].operand})"


OPS: Ops = {
    "Equal": "{0} == {1}",
    "Greater": "{0} > {1}",
    "GreaterEqual": "{0} >= {1}",
    "IsFinite": "torch.isfinite({0:t})",
    "IsInf": "torch.isinf({0:t})",
    "IsNan": "torch.isnan({0:t})",
    "Less": "{0} < {1}",
    "LessEqual": "{0} <= {1}",
    "LogicalAnd": "{0} & {1}",
    "LogicalNot": "~{0:t}",
    "LogicalOr": "{0} | {1}",
    "NotEqual": "{0} != {1}",
    "Select": select,
    "SelectV2": select_v2,
}
