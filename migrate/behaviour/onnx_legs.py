"""onnxruntime as a third witness: the model exported by torch, and by tf2onnx from TensorFlow's
graph, on the first batch.

For a model that reads text both exports are of its numeric part, see `numeric`. An export that its
exporter refuses is left out with the exporter's own message; none is needed for the verdict.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import logging
import re
import warnings
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Sequence

import numpy as np

from migrate.behaviour.in_tensorflow import TensorFlowGraph
from migrate.behaviour.largest import Largest
from migrate.behaviour.numeric import Numeric, Positional
from migrate.behaviour.report import OutputDifference
from migrate.behaviour.rows import Rows
from semisync.common.errors import BadInput, SemisyncError
from semisync.common.extras import not_installed

OF_TORCH, OF_TENSORFLOW = "onnxruntime, torch's export", "onnxruntime, TensorFlow's export"
_LARGEST = 1 << 31  # bytes of a message of protocol buffers, which an ONNX model is
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class Legs(NamedTuple):
    """The outputs of the legs that ran, and why others were skipped."""

    outputs: List[OutputDifference]
    skipped: Dict[str, str]


class Witness(NamedTuple):
    """The expected results of both legs: TensorFlow's outputs for the batch, by tensor.

    Attributes:
        names: their names in the report.
    """

    batch: Rows
    outputs: Mapping[str, np.ndarray]
    names: Mapping[str, str]


def run_legs(tensorflow: TensorFlowGraph, part: Numeric, witness: Witness) -> Legs:
    """Runs both legs."""
    missing = _missing("onnxruntime")
    if missing:
        return Legs([], {OF_TORCH: missing, OF_TENSORFLOW: missing})
    size = sum(one.numel() * one.element_size() for one in part.module.state_dict().values())
    if size >= _LARGEST:
        why = f"the model has {size:,} bytes, and an ONNX file holds {_LARGEST:,}"
        return Legs([], {OF_TORCH: why, OF_TENSORFLOW: why})
    legs = Legs([], {})
    for leg, export in (
        (OF_TORCH, lambda: _by_torch(part)),
        (OF_TENSORFLOW, lambda: _by_tensorflow(tensorflow, part, witness)),
    ):
        _run(leg, export, part, witness, legs)
    return legs


def _run(
    leg: str, export: Callable[[], bytes], part: Numeric, witness: Witness, legs: Legs
) -> None:
    try:
        with _quiet():
            found = _in_onnxruntime(export(), part.values)
    except Exception as error:  # whatever an exporter or onnxruntime raises
        legs.skipped[leg] = _sentence(error)
        return
    for (tensor, theirs), ours in zip(witness.outputs.items(), found):
        largest = Largest(witness.names[tensor], leg)
        largest.take(witness.batch, theirs, ours)
        legs.outputs.append(largest.told())


def _by_torch(part: Numeric) -> bytes:
    missing = _missing("onnxscript")
    if missing:
        raise BadInput(missing)
    import torch

    from migrate.runtime.tables.by_id import TableById

    if any(isinstance(one, TableById) for one in part.module.modules()):
        raise BadInput(
            "torch does not export a table by raw id, whose rows are found while the model runs"
        )
    # The names that `tf_child.exporting` gives TensorFlow's placeholders, too.
    names = [f"input_{place}" for place in range(len(part.tensors))]
    exported = torch.export.export(Positional(part), tuple(part.values))
    written: Any = torch.onnx.export(exported, input_names=names, dynamo=True, verbose=False)
    return written.model_proto.SerializeToString()


def _by_tensorflow(tensorflow: TensorFlowGraph, part: Numeric, witness: Witness) -> bytes:
    model, why = tensorflow.onnx(part.tensors, list(witness.outputs))
    if model is None:
        raise BadInput(why)
    return model


def _in_onnxruntime(model: bytes, values: Sequence[Any]) -> List[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal alone
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given = {f"input_{place}": value.numpy() for place, value in enumerate(values)}
    wanted = [one.name for one in session.get_inputs()]
    # tf2onnx keeps TensorFlow's names, "input_0:0"; an exporter may drop inputs that are not read.
    return session.run(None, {name: given[name.partition(":")[0]] for name in wanted})


def _missing(package: str) -> str:
    try:
        importlib.import_module(package)
    except ImportError:
        return not_installed(package, "onnx")
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silences exporters, which print messages for their own developers."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _sentence(error: BaseException) -> str:
    """The first line of the original error."""
    if isinstance(error, SemisyncError):
        return str(error)
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [_COLOURS.sub("", line).strip() for line in str(error).splitlines()]
    text = next(filter(None, lines), "")
    return f"{type(error).__name__}: {text[:300]}"
