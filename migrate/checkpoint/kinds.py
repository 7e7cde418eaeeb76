"""A tensor's purpose, by its name and shape.

A slot is named `<variable>/<optimizer name>` or `<variable>/<optimizer name>_<k>` and has the
shape of its variable. The optimizer's `name=` argument changes the name, so that only TensorFlow's
default names are known here; a MetaGraph tells the others (`migrate.graph.training`). In an
object-based checkpoint the key of a slot says so itself (`migrate.checkpoint.objects` tells whose
slot it is).
"""

from __future__ import annotations

import re
from typing import Dict, Mapping, Tuple

from migrate.optimizers.registry import LEAVES
from semisync.encoding.dtypes import DType

_LEAF = re.compile(r"({})(_\d+)?".format("|".join(LEAVES)))


def classify(tensors: Mapping[str, Tuple[DType, Tuple[int, ...]]]) -> Dict[str, str]:
    """ "variable", "slot", "scalar" or "other" (no plain numbers) for each name."""
    return {name: _kind(name, tensors) for name in tensors}


def _kind(name: str, tensors: Mapping[str, Tuple[DType, Tuple[int, ...]]]) -> str:
    dtype, shape = tensors[name]
    if dtype.array is None:
        return "other"
    if "/.OPTIMIZER_SLOT/" in name:
        return "slot"
    base, _, leaf = name.rpartition("/")
    if _LEAF.fullmatch(leaf) and base in tensors and tensors[base][1] == shape:
        return "slot"
    return "variable" if shape else "scalar"
