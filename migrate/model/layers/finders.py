"""Every layer that is recognised."""

from __future__ import annotations

from typing import Callable, Dict, List, Optional

from migrate.graph.metagraph import Node, explained
from migrate.model.layers.batch_norm import find_batch_norm
from migrate.model.layers.by_id import find_by_id
from migrate.model.layers.choices import find_default
from migrate.model.layers.clip import find_clip
from migrate.model.layers.dense_columns import find_bucketized, find_dense_column
from migrate.model.layers.dropout import find_dropout
from migrate.model.layers.layer import Layer, Subject
from migrate.model.layers.layer_norm import find_layer_norm
from migrate.model.layers.linear import find_linear, find_pointwise
from migrate.model.layers.present import find_present
from migrate.model.layers.tiles import find_tiles
from migrate.model.layers.vocabulary import find_vocabulary

# The first finder that recognises a node wins.
FINDERS: List[Callable[[Subject, Node], Optional[Layer]]] = [
    find_batch_norm,
    find_layer_norm,
    find_pointwise,
    find_linear,
    find_dropout,
    find_clip,
    find_dense_column,
    find_present,
    find_bucketized,
    find_default,
    find_tiles,
    find_vocabulary,
    find_by_id,
]


def find_layers(subject: Subject, order: List[Node]) -> Dict[str, Layer]:
    """The layers of the needed nodes, by the node that each ends at."""
    layers: Dict[str, Layer] = {}
    for node in order:
        with explained(subject.graph, node):
            found = next(filter(None, (find(subject, node) for find in FINDERS)), None)
        if found is not None:
            layers[node.name] = found
    return layers
