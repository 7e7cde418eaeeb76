"""The training ops of a graph: which variable each updates, with which slots and hyperparameters.

    (Resource)(Sparse)Apply<Optimizer>   inputs: variable, slots, hyperparameters, gradient
    several ops                          Adam on a table, see migrate.graph.adam_updates

An input is followed back through ops that only pass a value on to the variable node that it comes
from. A hyperparameter that is no constant, since a schedule or a placeholder feeds it, is None.
Source: tensorflow/core/ops/training_ops.cc; the order of the slots is that in which
tensorflow/python/training/*.py creates them, which their names count.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from migrate.graph.adam_updates import find_adam_updates
from migrate.graph.constants import constant
from migrate.graph.lookups import origin
from migrate.graph.metagraph import Graph, Node, flag
from migrate.graph.updates import Update

_FLAGS = {"use_nesterov": "nesterov", "apply_sparse_rmsprop": "sparse_rmsprop"}


class _Op(NamedTuple):
    """optimizer: TensorFlow's name of it. slots, hyperparameters: numbers of the inputs."""

    optimizer: str
    slots: Tuple[int, ...]
    hyperparameters: Dict[str, int]


def _numbered(first: int, *names: str) -> Dict[str, int]:
    return {name: first + index for index, name in enumerate(names)}


_BETAS = ("learning_rate", "beta1", "beta2", "epsilon")
_FTRL = ("learning_rate", "l1", "l2", "learning_rate_power")
_FTRL_V2 = ("learning_rate", "l1", "l2", "l2_shrinkage", "learning_rate_power")
_RMSPROP = ("learning_rate", "decay", "momentum", "epsilon")

_ADADELTA = _Op("Adadelta", (1, 2), _numbered(3, "learning_rate", "rho", "epsilon"))
_ADAGRAD = _Op("Adagrad", (1,), _numbered(2, "learning_rate"))
_ADAGRAD_V2 = _Op("Adagrad", (1,), _numbered(2, "learning_rate", "epsilon"))
_ADAM = _Op("Adam", (1, 2), _numbered(5, *_BETAS))
_ADAM_ASYNC = _Op("AdamAsync", (1, 2), _numbered(5, *_BETAS))
_CENTERED = _Op("RMSProp", (2, 1, 3), _numbered(4, *_RMSPROP))  # inputs: variable, mg, ms, mom
_PROXIMAL = _Op("ProximalAdagrad", (1,), _numbered(2, "learning_rate", "l1", "l2"))
_RMS = _Op("RMSProp", (1, 2), _numbered(3, *_RMSPROP))

_OPS: Dict[str, _Op] = {  # by the op without "Resource"
    "ApplyAdadelta": _ADADELTA,
    "ApplyAdagrad": _ADAGRAD,
    "ApplyAdagradDA": _Op("AdagradDA", (1, 2), _numbered(4, "learning_rate", "l1", "l2")),
    "ApplyAdagradV2": _ADAGRAD_V2,
    "ApplyAdaMax": _Op("AdaMax", (1, 2), _numbered(4, *_BETAS)),
    "ApplyAdam": _ADAM,
    "ApplyAdamAsync": _ADAM_ASYNC,
    "ApplyCenteredRMSProp": _CENTERED,
    "ApplyFtrl": _Op("Ftrl", (1, 2), _numbered(4, *_FTRL)),
    "ApplyFtrlV2": _Op("Ftrl", (1, 2), _numbered(4, *_FTRL_V2)),
    "ApplyMomentum": _Op("Momentum", (1,), {"learning_rate": 2, "momentum": 4}),
    "ApplyProximalAdagrad": _PROXIMAL,
    "ApplyRMSProp": _RMS,
    "SparseApplyAdadelta": _ADADELTA,
    "SparseApplyAdagrad": _ADAGRAD,
    "SparseApplyAdagradDA": _Op("AdagradDA", (1, 2), _numbered(5, "learning_rate", "l1", "l2")),
    "SparseApplyAdagradV2": _ADAGRAD_V2,
    "SparseApplyAdamAsync": _ADAM_ASYNC,
    "SparseApplyCenteredRMSProp": _CENTERED,
    "SparseApplyFtrl": _Op("Ftrl", (1, 2), _numbered(5, *_FTRL)),
    "SparseApplyFtrlV2": _Op("Ftrl", (1, 2), _numbered(5, *_FTRL_V2)),
    "SparseApplyMomentum": _Op("Momentum", (1,), {"learning_rate": 2, "momentum": 5}),
    "SparseApplyProximalAdagrad": _PROXIMAL,
    "SparseApplyRMSProp": _RMS,
}
_APPLIES = re.compile(r"(Resource)?(Sparse)?Apply\w+")


def find_updates(graph: Graph) -> List[Update]:
    """Each update of a variable that has slots; of an op that is not known none."""
    return [*_single_ops(graph), *find_adam_updates(graph)]


def unknown_updates(graph: Graph) -> Iterator[Tuple[str, str, str]]:
    """(variable, other variable that it reads, op) of each training op that is not known here;
    the others may be its slots."""
    for node in graph.nodes.values():
        if _APPLIES.fullmatch(node.op) and _known(node) is None:
            variable, *others = (origin(graph, edge) for edge in node.inputs)
            for other in others:
                if variable is not None and other is not None:
                    yield variable, other, node.op


def _known(node: Node) -> Optional[_Op]:
    return _OPS.get(node.op.replace("Resource", "", 1))


def _single_ops(graph: Graph) -> Iterator[Update]:
    for node in graph.nodes.values():
        op = _known(node)
        if op is None or len(node.inputs) <= max(op.hyperparameters.values()):
            continue
        variable = origin(graph, node.inputs[0])
        slots = [origin(graph, node.inputs[number]) for number in op.slots]
        if variable is not None and None not in slots:
            known = {
                name: constant(graph, node.inputs[number][0])
                for name, number in op.hyperparameters.items()
            }
            set_ = {name: 1.0 for attr, name in _FLAGS.items() if flag(graph, node, attr)}
            named = tuple(slot for slot in slots if slot is not None)
            yield Update(op.optimizer, variable, named, {**known, **set_}, lazy=False)
