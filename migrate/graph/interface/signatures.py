"""The names of the inputs by the caller, or by the signatures of a SavedModel."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from migrate.graph.metagraph import Graph, Signature

SERVING = "serving_default"
_INTERNAL = "__saved_model"  # TensorFlow 2 has the op that initialises the model beside them


class Key(NamedTuple):
    """An input or output of a signature.

    Attributes:
        part: which of `tensors` it is: the indices, values and shape of a sparse input; or None.
    """

    name: str
    tensors: Tuple[str, ...]
    part: Optional[int] = None


def in_order(graph: Graph) -> List[Signature]:
    """The signatures that have outputs, `serving_default` before the others."""
    keys = sorted(graph.signatures, key=lambda key: (key != SERVING, key))
    keys = [key for key in keys if not key.startswith(_INTERNAL)]
    return [graph.signatures[key] for key in keys if graph.signatures[key].outputs]


def input_keys(graph: Graph) -> Dict[str, Key]:
    """The names of the tensors that are fed: the caller's, else the signatures'; where these
    differ, the first signature's."""
    keys = {
        tensor: Key(name, tensors, part if tensors[1:] else None)
        for name, tensors in graph.named.items()
        for part, tensor in enumerate(tensors)
    }
    for signature in in_order(graph):
        taken = {key.name for key in keys.values()}
        for name, tensor in signature.inputs.items():
            if name not in taken:
                keys.setdefault(tensor, Key(name, (tensor,)))
        for name, tensors in signature.sparse.items():
            if name not in taken:
                for part, tensor in enumerate(tensors):
                    keys.setdefault(tensor, Key(name, tensors, part))
    return keys
