"""Hyperparameters of the optimizers, read from the training ops of a MetaGraph.

A training op takes them as inputs: constants, unless a schedule or a placeholder feeds them. They
are kept by the last part of the slots' names, which is the optimizer's own name: what holds for
ApplyAdam of a dense variable holds for the tables of the same optimizer, whose sparse updates are
no single op. LazyAdam is Adam whose sparse updates overwrite the rows of its slots (ScatterUpdate);
Adam's own decay them all and add to some.
Source: tensorflow/core/ops/training_ops.cc, contrib/opt/python/training/lazy_adam_optimizer.py
"""

from __future__ import annotations

import operator
from typing import Callable, Dict, Mapping, Optional, Set, Tuple

from migrate.graph import Graph, Node, constant_float, flag
from migrate.lookups import Saved

_PASS = {"Identity", "ReadVariableOp", "Cast"}
_ARITHMETIC: Dict[str, Callable[[float, float], float]] = {
    "Add": operator.add,
    "AddV2": operator.add,
    "Maximum": max,
    "Mul": operator.mul,
    "RealDiv": operator.truediv,
    "Sub": operator.sub,
}
_MAX_DEPTH = 16  # a damaged graph may be circular

# Training op without "Resource": position of the first slot, and of each hyperparameter.
_INPUTS: Dict[str, Tuple[int, Dict[str, int]]] = {
    "ApplyAdagrad": (1, {"learning_rate": 2}),
    "SparseApplyAdagrad": (1, {"learning_rate": 2}),
    "ApplyAdagradV2": (1, {"learning_rate": 2, "epsilon": 3}),
    "SparseApplyAdagradV2": (1, {"learning_rate": 2, "epsilon": 3}),
    "ApplyAdam": (1, {"learning_rate": 5, "beta1": 6, "beta2": 7, "epsilon": 8}),
    "ApplyAdamAsync": (1, {"learning_rate": 5, "beta1": 6, "beta2": 7, "epsilon": 8}),
    "SparseApplyAdamAsync": (1, {"learning_rate": 5, "beta1": 6, "beta2": 7, "epsilon": 8}),
    "ApplyAdaMax": (1, {"learning_rate": 4, "beta1": 5, "beta2": 6, "epsilon": 7}),
    "ApplyAdadelta": (1, {"learning_rate": 3, "rho": 4, "epsilon": 5}),
    "SparseApplyAdadelta": (1, {"learning_rate": 3, "rho": 4, "epsilon": 5}),
    "ApplyMomentum": (1, {"learning_rate": 2, "momentum": 4}),
    "SparseApplyMomentum": (1, {"learning_rate": 2, "momentum": 5}),
    "ApplyRMSProp": (1, {"learning_rate": 3, "decay": 4, "momentum": 5, "epsilon": 6}),
    "SparseApplyRMSProp": (1, {"learning_rate": 3, "decay": 4, "momentum": 5, "epsilon": 6}),
    "ApplyCenteredRMSProp": (2, {"learning_rate": 4, "decay": 5, "momentum": 6, "epsilon": 7}),
    "SparseApplyCenteredRMSProp": (
        2,
        {"learning_rate": 4, "decay": 5, "momentum": 6, "epsilon": 7},
    ),
    "ApplyFtrl": (1, {"learning_rate": 4, "l1": 5, "l2": 6, "learning_rate_power": 7}),
    "SparseApplyFtrl": (1, {"learning_rate": 5, "l1": 6, "l2": 7, "learning_rate_power": 8}),
    "ApplyFtrlV2": (
        1,
        {"learning_rate": 4, "l1": 5, "l2": 6, "l2_shrinkage": 7, "learning_rate_power": 8},
    ),
    "SparseApplyFtrlV2": (
        1,
        {"learning_rate": 5, "l1": 6, "l2": 7, "l2_shrinkage": 8, "learning_rate_power": 9},
    ),
}


def find_hyperparameters(graph: Graph, saved: Mapping[str, Saved]) -> Dict[str, Dict[str, float]]:
    """By the optimizer's name in the slots. What is no constant, or differs from variable to
    variable, is left out."""
    found: Dict[str, Dict[str, Optional[float]]] = {}
    for node in graph.nodes.values():
        first_slot, inputs = _INPUTS.get(node.op.replace("Resource", ""), (0, {}))
        slot = saved.get(node.inputs[first_slot][0]) if len(node.inputs) > first_slot else None
        if not inputs or slot is None:
            continue
        of_optimizer = found.setdefault(slot.name.rpartition("/")[2], {})
        for name, value in _read(graph, node, inputs).items():
            if of_optimizer.setdefault(name, value) != value:
                of_optimizer[name] = None
    return {
        leaf: {name: value for name, value in values.items() if value is not None}
        for leaf, values in found.items()
    }


def _read(graph: Graph, node: Node, inputs: Dict[str, int]) -> Dict[str, Optional[float]]:
    found: Dict[str, Optional[float]] = {}
    for name, position in inputs.items():
        source = node.inputs[position][0] if len(node.inputs) > position else ""
        found[name] = _value(graph, source, _MAX_DEPTH)
    if flag(graph, node, "use_nesterov"):
        found["nesterov"] = 1.0
    if flag(graph, node, "apply_sparse_rmsprop"):
        found["sparse_rmsprop"] = 1.0
    return found


def _value(graph: Graph, name: str, depth: int) -> Optional[float]:
    """The number that node `name` computes from constants; None where it depends on more.

    TensorFlow 2's Ftrl, for one, computes its l2 as l2 + beta / (2 learning_rate).
    """
    node = graph.nodes.get(name)
    if node is None or not depth:
        return None
    if node.op in _PASS and node.inputs:
        return _value(graph, node.inputs[0][0], depth - 1)
    if node.op in _ARITHMETIC and len(node.inputs) == 2:
        left, right = (_value(graph, edge[0], depth - 1) for edge in node.inputs)
        if left is None or right is None or (node.op == "RealDiv" and not right):
            return None
        return _ARITHMETIC[node.op](left, right)
    return constant_float(graph, name)


def lazily_updated(graph: Graph, saved: Mapping[str, Saved]) -> Set[str]:
    """Tensors of the checkpoint, rows of which a sparse update overwrites."""
    return {
        saved[node.inputs[0][0]].name
        for node in graph.nodes.values()
        if node.op in ("ScatterUpdate", "ResourceScatterUpdate")
        and node.inputs
        and node.inputs[0][0] in saved
    }
