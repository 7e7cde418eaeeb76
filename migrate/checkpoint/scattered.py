"""Slots of a partitioned variable that TensorFlow stored under one name per part.

`minimize` inside a variable_scope, as in the canned linear estimators, names the slots of the parts
of a partitioned variable V `V/part_0/Ftrl`, `V/part_1/Ftrl`: slot_creator cuts the length of the
variable's name from the slot's, which begins with the scope, so that the name may keep any end of
`part_0/Ftrl`, or more before it. Each is stored as a tensor of V's full shape that has only one
slice. Together they are the slot `V/Ftrl`.
Source: tensorflow/python/training/slot_creator.py, _create_slot_var, of 1.15 and 2.21.
"""

from __future__ import annotations

import math
from typing import Dict, List, NamedTuple

from migrate.checkpoint.pieces import Tensor, check_tiling


class Gathered(NamedTuple):
    """The tensors of a checkpoint once the scattered slots are put together.

    Attributes:
        tensors: all of them, whole.
        parts: name under which a part is stored -> name of the whole.
        as_stored: the tensors and parts, by the names under which they are stored.
    """

    tensors: Dict[str, Tensor]
    parts: Dict[str, str]
    as_stored: Dict[str, Tensor]


def gather(tensors: Dict[str, Tensor], path: str) -> Gathered:
    """Puts the parts of such slots together.

    Args:
        path: of the index, for errors.

    Raises:
        BadInput: the slices of any other tensor leave a gap or overlap.
    """
    groups: Dict[str, List[str]] = {}
    gathered: Dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        whole = _name_of_whole(name, tensors) if _lacks_slices(tensor) else name
        if whole == name:
            _check(name, tensor, path)
            gathered[name] = tensor
        else:
            groups.setdefault(whole, []).append(name)
    for whole, names in groups.items():
        pieces = sorted(piece for name in names for piece in tensors[name].pieces)
        gathered[whole] = tensors[names[0]]._replace(pieces=tuple(pieces))
        _check(whole, gathered[whole], path)
    parts = {name: whole for whole, names in groups.items() for name in names}
    return Gathered(dict(sorted(gathered.items())), parts, tensors)


def _lacks_slices(tensor: Tensor) -> bool:
    filled = sum(math.prod(piece.shape) for piece in tensor.pieces)
    return filled < math.prod(tensor.shape)


def _name_of_whole(name: str, tensors: Dict[str, Tensor]) -> str:
    """The name `V/Ftrl` for `V/part_0/Ftrl`, or `name` itself if it is not part of such a slot.

    V is the longest prefix that names a variable of the same type and shape.
    """
    owner, _, leaf = name.rpartition("/")
    while owner:
        owner = owner.rpartition("/")[0]
        variable = tensors.get(owner)
        # dtype and shape
        if variable is not None and variable[:2] == tensors[name][:2]:
            whole = f"{owner}/{leaf}"
            # A slot that is stored whole has no parts: `name` lacks slices then, and is refused.
            return name if whole in tensors else whole
    return name


def _check(name: str, tensor: Tensor, path: str) -> None:
    check_tiling(list(tensor.pieces), tensor.shape, f"{path}: tensor {name!r}")
