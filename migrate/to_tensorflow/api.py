"""`migrate.write_checkpoint`."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any, ContextManager, Mapping, Optional, Sequence, Tuple, Union

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.paths import STATE
from migrate.manifest.manifest import Manifest, is_converted
from migrate.model.training.build import Training
from migrate.open import open_checkpoint
from migrate.to_tensorflow.held import Side
from migrate.to_tensorflow.placing import refuse_taken
from migrate.to_tensorflow.shards import with_shards
from migrate.to_tensorflow.template import of_checkpoint, of_manifest
from migrate.to_tensorflow.write import Progress, Returned, write
from semisync.common.errors import UsageError
from semisync.common.files import write_text

Path = Union[str, os.PathLike]
Names = Mapping[str, Optional[str]]


def write_checkpoint(
    source: Any,
    prefix: Path,
    original: Optional[Path] = None,
    converted: Optional[Path] = None,
    optimizer: Optional[Any] = None,
    names: Optional[Names] = None,
    meta: Optional[str] = None,
    overwrite: bool = False,
    latest: bool = False,
    progress: Optional[Progress] = None,
    assets: Sequence[str] = (),
) -> Returned:
    """Writes the TensorFlow checkpoint `prefix`, of the format V2, from torch's state.

    Args:
        source: a directory that `semisync convert` wrote; a checkpoint of `semisync train`; a DCP
            that another training saved after a conversion; the result of `migrate.build_training`;
            or a module of `migrate.load_model`, with the `optimizer` of `migrate.build_optimizer`
            if there is one.
        prefix: of the files to write.
        original: prefix of the checkpoint that was converted: tensors that torch lacks are copied
            from it, and the layout is the same.
        converted: of a DCP of one's own training: the directory of the conversion that it began
            from.
        optimizer: of `migrate.build_optimizer`, for a module.
        names: of such a DCP: TensorFlow's name of a dense variable -> its key there, with ".T"
            appended where it is transposed, as the weight of an nn.Linear is; None: the original's
            value.
        meta: of a checkpoint of `semisync train`: the MetaGraph, where it is not beside the
            original.
        overwrite: replace a checkpoint that is there.
        latest: write the file `checkpoint` too, which names it as the latest of its directory.
        progress: called with (bytes done, bytes in all).
        assets: of such a checkpoint, as in `migrate.load_model`.

    Returns:
        The written and the copied tensors, a `Returned`.

    Raises:
        BadInput: source and original do not fit, are damaged, or something has no way back.
        UsageError: the arguments make no sense, or `prefix` is taken.
        SemisyncError: the files cannot be written.

    Examples:
        >>> returned = migrate.write_checkpoint(
        ...     "converted", "back/model.ckpt-40000", original="model.ckpt-40000"
        ... )
        >>> with migrate.open_checkpoint("back/model.ckpt-40000") as checkpoint:
        ...     print(int(checkpoint.read("global_step")))
        40000
    """
    prefix = os.fspath(prefix)
    refuse_taken(prefix, overwrite)
    # A prefix is no file: only its directory may be a link.
    prefix = os.path.join(os.path.realpath(os.path.dirname(prefix)), os.path.basename(prefix))
    with _opened(original) as checkpoint:
        if checkpoint is not None and _same(checkpoint.prefix, prefix):
            raise UsageError(f"{prefix} is the original itself; give another prefix")
        side, manifest = _side(source, checkpoint, converted, optimizer, names, meta, assets)
        if checkpoint is not None:
            side, template = with_shards(side, checkpoint, meta), of_checkpoint(checkpoint)
        elif manifest is not None:
            template = of_manifest(manifest, side.place)
        else:
            raise UsageError(
                "a module does not say how its variables are stored; give the checkpoint that it "
                "was made from as the original"
            )
        written = write(side, template, checkpoint, prefix, overwrite, progress)
    if latest:
        _write_state(prefix)
    return written


def _opened(original: Optional[Path]) -> ContextManager[Optional[Checkpoint]]:
    return nullcontext(None) if original is None else open_checkpoint(original)


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _side(
    source: Any,
    original: Optional[Checkpoint],
    converted: Optional[Path],
    optimizer: Optional[Any],
    names: Optional[Names],
    meta: Optional[str],
    assets: Sequence[str],
) -> Tuple[Side, Optional[Manifest]]:
    """The tensors of `source`, and the manifest of the conversion where there is one."""
    # Imported here because they import torch.
    from migrate.to_tensorflow.by_graph import side_of_training
    from migrate.to_tensorflow.by_manifest import side_of_dcp
    from migrate.to_tensorflow.in_directory import side_of_directory

    directory = os.fspath(source) if isinstance(source, (str, os.PathLike)) else ""
    trained = converted is None and _is_dcp(directory) and not is_converted(directory)
    if meta is not None and not trained:
        raise UsageError("meta (--meta) is for the checkpoint of a `semisync train` alone")
    if not directory:
        if converted is not None or names is not None:
            raise UsageError("converted and names are for the directory of a DCP, not for a module")
        return _in_memory(source, optimizer), None
    if optimizer is not None:
        raise UsageError("an optimizer belongs to a module; a directory has its own state")
    if converted is not None:
        return side_of_dcp(directory, os.fspath(converted), names or {})
    if names is not None:
        raise UsageError("names are for the directory of a DCP; give the converted one too")
    if not trained:
        return side_of_directory(directory)
    if original is None:
        raise UsageError(
            f"{directory} was saved by a training; give the checkpoint from which it began as the "
            "original (--original)"
        )
    return side_of_training(directory, original, meta, assets), None


def _is_dcp(directory: str) -> bool:
    return bool(directory) and os.path.exists(os.path.join(directory, ".metadata"))


def _in_memory(source: Any, optimizer: Optional[Any]) -> Side:
    from migrate.to_tensorflow.in_module import side_of_module

    if isinstance(source, Training):
        if optimizer is not None:
            raise UsageError("a Training has its own optimizer; leave the other out")
        return side_of_module(source.module, source.optimizer)
    return side_of_module(source, optimizer)


def _write_state(prefix: str) -> None:
    """Names `prefix` as the latest checkpoint of its directory, and as the only one that is kept.

    The file `checkpoint` is a CheckpointState as text; a prefix without a directory is one of the
    file's own. Source: tensorflow/python/training/checkpoint_state.proto
    """
    directory, name = os.path.split(prefix)
    quoted = "".join(_escaped(byte) for byte in os.fsencode(name))
    lines = [f'{field}: "{quoted}"\n' for field in _FIELDS]
    write_text(os.path.join(directory, STATE), "".join(lines))


_FIELDS = ("model_checkpoint_path", "all_model_checkpoint_paths")


def _escaped(byte: int) -> str:
    """A byte of a string in protobuf's text format."""
    character = chr(byte)
    if character in '"\\':
        return "\\" + character
    return character if 0x20 <= byte < 0x7F else f"\\{byte:03o}"
