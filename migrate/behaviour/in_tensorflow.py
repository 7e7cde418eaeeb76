"""A checkpoint's graph in TensorFlow: its tensors, and its training steps, batch by batch."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from migrate.behaviour.setting import Setting
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.metagraph import Graph, Node
from migrate.scoring.in_tensorflow import TensorFlowModel, arrays_of
from migrate.scoring.model import Feature, Input
from semisync.common.errors import BadInput
from semisync.common.tensor_names import of_edge

Gradient = Tuple[np.ndarray, Optional[np.ndarray]]  # values, and for a sparse one its indices


class Begun(NamedTuple):
    """The values that a training step computes before it changes anything.

    Attributes:
        loss, again: of the batch; computed again, if requested.
        drawn: the random values of the graph, by tensor.
        watched: the values of the watched tensors, once in the first step.
        gradients: by variable node.
    """

    loss: float
    again: Optional[float]
    drawn: Dict[str, np.ndarray]
    watched: Dict[str, np.ndarray]
    gradients: Dict[str, Gradient]


class TensorFlowGraph(TensorFlowModel):
    """Starts the child and opens the graph.

    Args:
        graph: the MetaGraph, unchanged.
        inputs: those that take a column, and for each its tensors: one, or a sparse input's
            indices, values and dense shape.
        feeds: {tensor: value} of constants.
        fetches: tensors that will be fetched.
        weights: nodes of the variables that it computes with.
        steps: how it trains, see `tf_child.probe.Probe`; None: it does not.
        fused: FusedBatchNorms that take constants, see `serving`.

    Raises:
        BadInput: as `TensorFlowModel`.
    """

    def __init__(
        self,
        setting: Setting,
        checkpoint: Checkpoint,
        graph: Graph,
        inputs: Sequence[Tuple[Input, Sequence[str]]],
        feeds: Mapping[str, Any],
        fetches: Sequence[str] = (),
        weights: Sequence[str] = (),
        steps: Optional[Mapping[str, Any]] = None,
        fused: Optional[Mapping[str, Any]] = None,
    ) -> None:
        saved_model = os.path.basename(graph.path) == "saved_model.pb"
        if saved_model and graph.rewired and steps is not None:
            raise BadInput(
                f"{graph.path} is that of a job whose optimizer semisync wraps; give the .meta of "
                "a checkpoint with --meta"
            )
        # A frozen graph is its own checkpoint.
        kind = "frozen" if graph.path == checkpoint.prefix else "checkpoint"
        spec = {
            "kind": "saved_model" if saved_model else kind,
            "path": os.path.dirname(graph.path) if saved_model else checkpoint.prefix,
            "tags": ["serve"],
            "signature": None,
            "meta": graph.path,
            "nodes": {name: _op_and_inputs(graph.nodes[name]) for name in graph.rewired},
            "fused": dict(fused or {}),
            "modules": list(setting.modules),
            "inputs": [[one.column, ",".join(tensors), one.sparse] for one, tensors in inputs],
            "examples": None,
            "output": None,
            "feeds": dict(feeds),
            "fetches": list(fetches),
            "weights": list(weights),
            "steps": steps,
        }
        super().__init__(setting.python, spec, {}, setting.timeout)

    def fetch(
        self,
        rows: int,
        features: Sequence[Feature],
        tensors: Sequence[str],
        rounding: bool = False,
    ) -> List[np.ndarray]:
        """The values of tensors for one batch, or their rounding, see `tf_child.rounding`."""
        head = {"rows": rows, "fetch": list(tensors), "rounding": rounding}
        _, arrays = self._ask(head, arrays_of(features))
        return [arrays[str(place)] for place in range(len(tensors))]

    def onnx(self, inputs: Sequence[str], outputs: Sequence[str]) -> Tuple[Optional[bytes], str]:
        """The graph as an ONNX model of these tensors, or None and the reason."""
        head, arrays = self._ask({"onnx": list(outputs), "inputs": list(inputs)})
        return (arrays["model"].tobytes() if "model" in arrays else None), head["why"]

    def begin(self, rows: int, features: Sequence[Feature], twice: bool) -> Begun:
        """Begins a training step on a batch; `twice`, in the first one, computes the loss again,
        and the watched tensors."""
        head = {"rows": rows, "begin": "twice" if twice else "once"}
        _, arrays = self._ask(head, arrays_of(features))
        again = float(arrays["again"]) if twice else None
        drawn, watched = _under("drawn/", arrays), _under("watched/", arrays)
        return Begun(float(arrays["loss"]), again, drawn, watched, _gradients(arrays))

    def rounding(self) -> Tuple[float, Dict[str, np.ndarray]]:
        """The rounding of the loss and the gradients of the step that was begun; sparse ones by
        their rows, ascending, repeated ones summed."""
        _, arrays = self._ask({"step": "rounding"})
        return float(arrays["loss"]), _under("gradient/", arrays)

    def finish(
        self,
    ) -> Tuple[Dict[str, np.ndarray], Dict[str, np.ndarray], Dict[str, Gradient]]:
        """Takes the step that was begun; returns every variable after it, by its name in the
        checkpoint, the ids of tables by raw id, ascending, and the gradients that it applied."""
        _, arrays = self._ask({"step": "finish"})
        return _under("after/", arrays), _under("ids/", arrays), _gradients(arrays)


def _op_and_inputs(node: Node) -> List[Any]:
    """[op, inputs] in the form of a GraphDef."""
    return [node.op, [*map(of_edge, node.inputs), *(f"^{name}" for name in node.controls)]]


def _gradients(arrays: Mapping[str, np.ndarray]) -> Dict[str, Gradient]:
    found: Dict[str, List[np.ndarray]] = {}
    # NODE/0 is a gradient's values, NODE/1 the indices of a sparse one.
    for name, array in sorted(_under("gradient/", arrays).items()):
        found.setdefault(name.rpartition("/")[0], []).append(array)
    return {node: (both[0], both[1] if both[1:] else None) for node, both in found.items()}


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
