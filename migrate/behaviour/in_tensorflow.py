"""A checkpoint's graph in TensorFlow: its tensors, and its training steps, batch by batch."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from migrate.behaviour.setting import Setting
from migrate.checkpoint.checkpoint import Checkpoint
from migrate.graph.metagraph import Edge, Graph, Node
from migrate.scoring.in_tensorflow import TensorFlowModel, arrays_of
from migrate.scoring.model import Feature, Input
from semisync.common.errors import BadInput


class Step(NamedTuple):
    """One training step. loss: before it. again: the loss computed once more, if that was asked
    for. drawn: what the graph drew at random, by tensor. after: every variable, by its name in the
    checkpoint."""

    loss: float
    again: Optional[float]
    drawn: Dict[str, np.ndarray]
    after: Dict[str, np.ndarray]


class TensorFlowGraph(TensorFlowModel):
    """Starts the child and opens the graph.

    Args:
        graph: the MetaGraph, as TensorFlow has it.
        inputs: what takes a column, and for each its tensors: one, or a sparse input's indices,
            values and dense shape.
        feeds: {tensor: value} of constants.
        fetches: tensors that will be asked for.
        steps: how it trains, see `tf_child.probe.Probe`; None: it does not.
        fused: FusedBatchNorms that take constants, see `serving`.

    Raises: as `TensorFlowModel`.
    """

    def __init__(
        self,
        setting: Setting,
        checkpoint: Checkpoint,
        graph: Graph,
        inputs: Sequence[Tuple[Input, Sequence[str]]],
        feeds: Mapping[str, Any],
        fetches: Sequence[str] = (),
        steps: Optional[Mapping[str, Any]] = None,
        fused: Optional[Mapping[str, Any]] = None,
    ) -> None:
        saved_model = os.path.basename(graph.path) == "saved_model.pb"
        if saved_model and graph.rewired and steps is not None:
            raise BadInput(
                f"{graph.path} is that of a job whose optimizer semisync wraps; give the .meta of "
                "a checkpoint with --meta"
            )
        spec = {
            "kind": "saved_model" if saved_model else "checkpoint",
            "path": os.path.dirname(graph.path) if saved_model else checkpoint.prefix,
            "tags": ["serve"],
            "signature": None,
            "meta": graph.path,
            "nodes": {name: _told(graph.nodes[name]) for name in graph.rewired},
            "fused": dict(fused or {}),
            "modules": list(setting.modules),
            "inputs": [[one.column, ",".join(tensors), one.sparse] for one, tensors in inputs],
            "examples": None,
            "output": None,
            "feeds": dict(feeds),
            "fetches": list(fetches),
            "steps": steps,
        }
        super().__init__(setting.python, spec, {}, setting.timeout)

    def fetch(
        self, rows: int, features: Sequence[Feature], tensors: Sequence[str]
    ) -> List[np.ndarray]:
        """The values of tensors for one batch."""
        _, arrays = self._ask({"rows": rows, "fetch": list(tensors)}, arrays_of(features))
        return [arrays[str(place)] for place in range(len(tensors))]

    def onnx(self, inputs: Sequence[str], outputs: Sequence[str]) -> Tuple[Optional[bytes], str]:
        """The graph as an ONNX model of these tensors, or None and why there is none."""
        head, arrays = self._ask({"onnx": list(outputs), "inputs": list(inputs)})
        return (arrays["model"].tobytes() if "model" in arrays else None), head["why"]

    def step(self, rows: int, features: Sequence[Feature], again: bool) -> Step:
        """Takes one training step on a batch."""
        _, arrays = self._ask({"rows": rows, "again": again}, arrays_of(features))
        return Step(
            float(arrays["loss"]),
            float(arrays["again"]) if again else None,
            _under("drawn/", arrays),
            _under("after/", arrays),
        )


def tensor_name(edge: Edge) -> str:
    """What TensorFlow calls it."""
    return "{}:{}".format(*edge)


def _told(node: Node) -> List[Any]:
    """[op, inputs] as a GraphDef has them."""
    return [node.op, [*map(tensor_name, node.inputs), *(f"^{name}" for name in node.controls)]]


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
    return {name[len(prefix) :]: array for name, array in arrays.items() if name.startswith(prefix)}
