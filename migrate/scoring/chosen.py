"""The choice of a model, as plain values that can be sent to any process, which then opens it."""

from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple, Union

from migrate.scoring import model_files
from migrate.scoring.model import Input, Model
from semisync.common.errors import UsageError


class Asked(NamedTuple):
    """A request to a model of either framework.

    Attributes:
        named: (column, input, whether it is sparse).
        feeds: (input, value) of constants.
        output: which one; None for the only one.
    """

    named: Sequence[Tuple[str, str, bool]] = ()
    feeds: Sequence[Tuple[str, Any]] = ()
    output: Optional[str] = None


class Converted(NamedTuple):
    """The directory that `semisync convert` wrote, and its model.py, or the user's own code."""

    directory: str
    torch_model: Optional[str] = None


class TensorFlowFiles(NamedTuple):
    """A model as TensorFlow saved it, and the interpreter that opens it.

    Args:
        saved_model: the directory of a SavedModel; or
        checkpoint: the prefix of a checkpoint, or its directory; the file of a frozen graph.
        meta: the checkpoint's MetaGraph, by default the prefix with ".meta".
        signature, tags: of the SavedModel.
        examples: the input that takes the others as serialized tf.train.Examples.
        modules: imported first, for their ops.
        python: an interpreter with TensorFlow 1.15 or later; None: the current one.
        timeout: seconds for TensorFlow to open the model, or for a batch.

    Examples:
        model = migrate.TensorFlowFiles(saved_model=saved, python=python)
    """

    saved_model: Optional[str] = None
    checkpoint: Optional[str] = None
    meta: Optional[str] = None
    signature: str = "serving_default"
    tags: Sequence[str] = ("serve",)
    examples: Optional[str] = None
    modules: Sequence[str] = ()
    python: Optional[str] = None
    timeout: float = 600.0


Chosen = Union[Converted, TensorFlowFiles]


def chosen(args: Any) -> Chosen:
    """The model that the arguments of `semisync score` name."""
    if args.converted:
        return Converted(args.converted, args.torch_model)
    return TensorFlowFiles(
        saved_model=args.saved_model,
        checkpoint=args.checkpoint,
        meta=args.meta,
        signature=args.signature,
        tags=tuple(args.tags.split(",")),
        examples=args.examples,
        modules=tuple(args.tf_import),
        python=args.tf_python,
        timeout=args.timeout,
    )


def origin_of(which: Chosen, asked: Asked) -> Dict[str, Any]:
    """`model.Model.origin` without the versions: the SHA-256 of the model's files.

    Raises:
        UsageError, BadInput: they are not the files of one model.
    """
    if isinstance(which, Converted):
        return model_files.of_conversion(which.directory, which.torch_model)
    if which.saved_model is not None and which.checkpoint is None:
        return model_files.of_saved_model(which.saved_model)
    if which.checkpoint is not None and which.saved_model is None:
        return model_files.of_checkpoint(*_graph_files(which, asked))
    raise UsageError("TensorFlow's model is a SavedModel or a checkpoint; give one of them")


def open_model(which: Chosen, asked: Asked, origin: Dict[str, Any]) -> Model:
    """The model, ready to score; raises UsageError or BadInput as its class does."""
    if isinstance(which, TensorFlowFiles):
        return _in_tensorflow(which, asked, origin)
    if which.torch_model is None:
        from migrate.scoring.in_converted import ConvertedModel

        feeds = dict(asked.feeds)
        return ConvertedModel(which.directory, asked.named, feeds, asked.output, origin)
    from migrate.scoring.in_torch import TorchModel

    taken = [
        Input(column, name, "int64" if sparse else None, sparse)
        for column, name, sparse in asked.named
    ]
    return TorchModel(which.torch_model, which.directory, taken, origin)


def _in_tensorflow(which: TensorFlowFiles, asked: Asked, origin: Dict[str, Any]) -> Model:
    from migrate.scoring.in_tensorflow import TensorFlowModel

    kind, path, meta = "saved_model", which.saved_model, None
    if path is None:
        path, meta = _graph_files(which, asked)
        kind = "frozen" if meta == path else "checkpoint"
    spec = {
        "kind": kind,
        "path": path,
        "meta": meta,
        "tags": list(which.tags),
        "signature": which.signature,
        "modules": list(which.modules),
        "inputs": [list(one) for one in asked.named],
        "examples": which.examples,
        "output": asked.output,
        "feeds": dict(asked.feeds),
    }
    return TensorFlowModel(which.python or sys.executable, spec, origin, which.timeout)


def _graph_files(which: TensorFlowFiles, asked: Asked) -> Tuple[str, str]:
    return model_files.graph_files(str(which.checkpoint), which.meta, asked.output)
