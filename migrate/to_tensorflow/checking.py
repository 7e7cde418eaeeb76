"""Do torch's tensors, the template of the checkpoint, and the original fit?"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.checkpoint.pieces import Tensor
from migrate.to_tensorflow.held import Side
from migrate.to_tensorflow.template import Template
from semisync.common.errors import BadInput
from semisync.common.sentences import some_of
from semisync.encoding.dtypes import BY_NAME, widened


def check(side: Side, template: Template, original: Optional[Checkpoint]) -> List[str]:
    """Checks that all fits; returns the names of the tensors whose values the original gives.

    Raises:
        BadInput: a tensor does not fit, or is missing.
    """
    groups = template.groups()
    source = f"the manifest of {side.place}" if original is None else original.prefix
    if side.refused:
        name, why = min(side.refused.items())
        raise BadInput(f"{side.place} does not give back {name!r}: {why}")
    for name, held in sorted(side.held.items()):
        if name not in groups and original is None:
            continue  # it was cast: see below
        if name not in groups:
            raise BadInput(
                f"{source} has no tensor {name!r}, which {side.place} has; give the checkpoint "
                "that was converted"
            )
        stored = template.tensors[groups[name][0][0]]
        if held.shape != stored.shape or not _fits(held.dtype, stored):
            raise BadInput(
                f"{side.place} has {name!r} as {held.dtype} {list(held.shape)}, and {source} as "
                f"{stored.dtype.name} {list(stored.shape)}; they are of different models"
            )
    missing = sorted(set(groups) - set(side.held))
    if original is not None:
        _check_scalars(side, original)
        return missing
    cast_ones = set(side.held) - set(groups)
    if missing or side.lacking or cast_ones:
        raise BadInput(_without_original(side, sorted({*missing, *side.lacking, *cast_ones})))
    return []


def _without_original(side: Side, names: Sequence[str]) -> str:
    """The reason why only the original can give these tensors."""
    why = "it was cast, and the manifest does not say from which type"
    if names[0] not in side.held:
        why = side.lacking.get(names[0], "it is not there")
    return (
        f"{side.place} alone does not give back {_named(names)}; of the first: {why}; give the "
        "checkpoint that was converted as the original (--original)"
    )


def _fits(dtype: str, stored: Tensor) -> bool:
    """Whether values of torch's type fit the stored one, as floats and int64 ids for int32 do."""
    kinds = (dtype, stored.dtype.name)
    in_torch = BY_NAME.get(dtype)
    floating = in_torch is not None and in_torch.is_floating and stored.dtype.is_floating
    return kinds[0] == kinds[1] or floating or kinds == ("int64", "int32")


def _check_scalars(side: Side, original: Checkpoint) -> None:
    """Raises BadInput if the original is not the step and model that was converted."""
    for name, value in sorted(side.scalars.items()):
        if name not in original or original[name].shape:
            raise BadInput(
                f"{original.prefix} has no scalar {name!r}, which the checkpoint had that became "
                f"{side.place}; give that one"
            )
        now = widened(original.read(name)).item()
        # As text: the manifest has an infinity or NaN as a string, and a NaN equals nothing.
        if str(value) != str(now):
            raise BadInput(
                f"{original.prefix} has {name!r} {now}, but it was {value} in the checkpoint that "
                f"became {side.place}; give that one"
            )


def notes(
    side: Side, template: Template, copied: Sequence[str], original: Optional[Checkpoint]
) -> Iterator[str]:
    """Notes for the reader; `copied` names the tensors that the original gives."""
    yield from _slot_notes(side, copied, original)
    yield from _cast_notes(side, template)


def _slot_notes(side: Side, copied: Sequence[str], original: Optional[Checkpoint]) -> Iterator[str]:
    """The note that slots may be older than their variables."""
    owners = [
        name.rpartition("/")[0]
        for name in copied
        if original is not None and original[name].kind == "slot"
    ]
    listed = sorted(set(owners) & set(side.held))
    if listed:
        yield f"the slots of {_named(listed)} are the original's: {side.place} does not have them"


def _cast_notes(side: Side, template: Template) -> Iterator[str]:
    """Notes on the tensors that torch has in another type."""
    groups = template.groups()
    casts: Dict[str, List[str]] = {}
    for name, held in sorted(side.held.items()):
        if held.dtype != template.tensors[groups[name][0][0]].dtype.name and not held.resized:
            casts.setdefault(held.dtype, []).append(name)
    for dtype, names in casts.items():
        yield f"{_named(names)} came back from {dtype}, in the checkpoint's type"


def _named(names: Sequence[str]) -> str:
    return some_of(map(repr, names), most=10)
