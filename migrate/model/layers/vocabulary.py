"""LookupTable.find_or_hash: a vocabulary with buckets for other words.

    Select(found != default, found, StringToHashBucketFast(keys, buckets) + LookupTableSize)

Source: IdTableWithHashBuckets in tensorflow/python/ops/lookup_ops.py
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

import numpy

from graph_rewrite.graph.ops import PLUS
from migrate.graph.attributes import integer
from migrate.graph.metagraph import Node
from migrate.model.layers.layer import Layer, Modules, Subject
from migrate.model.lookup_tables import SIZES
from migrate.model.ops.values import Value, literal
from migrate.model.parameters import Parameters

_FINDS = {"LookupTableFind", "LookupTableFindV2"}
_SELECTS = {"Select", "SelectV2"}


class Vocabulary(NamedTuple):
    """A lookup of keys: `found` is the node that finds them, `inside` all others but the last."""

    found: Node
    default: numpy.ndarray
    buckets: int
    inside: Tuple[str, ...]


def vocabulary(subject: Subject, node: Node) -> Optional[Vocabulary]:
    """The look-up in a vocabulary with buckets that ends at `node`."""
    if node.op not in _SELECTS:
        return None
    differs, found, beyond = (subject.node(edge) for edge in node.inputs)
    if differs.op != "NotEqual" or found.op not in _FINDS or beyond.op not in PLUS:
        return None
    parts = {part.op: part for part in map(subject.node, beyond.inputs)}
    hashed = parts.pop("StringToHashBucketFast", None)
    size = next(iter(parts.values()), None)
    if hashed is None or size is None or size.op not in SIZES:
        return None
    table, keys, default = map(subject.beyond, found.inputs)
    # Integer keys are hashed as text.
    text = subject.beyond(hashed.inputs[0])
    if text != keys:
        as_text = subject.graph.nodes[text[0]]
        if as_text.op != "AsString" or subject.beyond(as_text.inputs[0]) != keys:
            return None
        # Padded text has another hash than the digits alone, which find_or_hash takes.
        if integer(subject.graph, as_text, "width") > 0:
            return None
    known, compared = subject.constant(default), subject.constant(differs.inputs[1])
    same = known is not None and compared is not None and known == compared
    of_found = subject.node(differs.inputs[0]) is found
    if not (same and of_found and subject.beyond(size.inputs[0]) == table) or known is None:
        return None
    inside = (differs.name, beyond.name, hashed.name, size.name)
    return Vocabulary(found, known, integer(subject.graph, hashed, "num_buckets"), inside)


def find_vocabulary(subject: Subject, node: Node) -> Optional[Layer]:
    """The look-up that ends at `node`."""
    words = vocabulary(subject, node)
    if words is None:
        return None
    more = f"{literal(words.default)}, {words.buckets}"

    def write(parameters: Parameters, modules: Modules, values: List[Value]) -> str:
        return f"{values[0].text}.find_or_hash({values[1].tensor}, {more})"

    return Layer(words.found.inputs[:2], write)
