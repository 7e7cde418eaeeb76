"""The object graph of an object-based (TensorFlow 2) checkpoint: the meaning of its long keys.

Such a checkpoint names a tensor by its path through Python objects, `model/user/.ATTRIBUTES/
VARIABLE_VALUE`, and keeps the graph of these objects in the string
`_CHECKPOINTABLE_OBJECT_GRAPH`:

    TrackableObjectGraph  {1 nodes}
    node                  {2 attributes, 3 slot_variables}
    attribute             {1 name, 2 full_name, 3 checkpoint_key}
    slot variable         {1 original_variable_node_id, 2 slot_name, 3 slot_variable_node_id}

The full name is the variable's own, as TensorFlow 1 would store it. An optimizer's node lists its
slots. Keras optimizers since 2.11 do not: their slots are plain variables of the optimizer, which
only their names identify.
Source: tensorflow/core/protobuf/trackable_object_graph.proto
"""

from __future__ import annotations

from typing import Dict, NamedTuple, Tuple

from semisync.encoding.wire import fields, message, number, text

KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE_OF = "/.ATTRIBUTES/VARIABLE_VALUE"  # the suffix of a tensor's key after the path
MAX_BYTES = 32 << 20  # of a graph: a variable takes some 250, and ten times that once decoded
_VALUE = "VARIABLE_VALUE"


class ObjectSlot(NamedTuple):
    """A slot such as "accumulator" or "m", and the key of its variable's tensor."""

    variable: str
    name: str


class ObjectGraph(NamedTuple):
    """The variables' own names and the slots, by key in the checkpoint."""

    full_names: Dict[str, str]
    slots: Dict[str, ObjectSlot]


EMPTY = ObjectGraph({}, {})


def decode(data: bytes, where: str) -> ObjectGraph:
    """The graph in the bytes of a TrackableObjectGraph."""
    keys: Dict[int, str] = {}  # of the variable at each node
    full_names: Dict[str, str] = {}
    slot_variables: Dict[int, Tuple[int, str]] = {}  # variable and name, by the slot's node
    nodes = (
        message(value, where) for field, value in fields(memoryview(data), where) if field == 1
    )
    for index, node in enumerate(nodes):
        for field, value in fields(node, where):
            if field == 2:
                inner = dict(fields(message(value, where), where))
                if text(inner.get(1, memoryview(b"")), where) == _VALUE and 3 in inner:
                    key = keys[index] = text(inner[3], where)
                    full_names[key] = text(inner.get(2, memoryview(b"")), where)
            elif field == 3:
                inner = dict(fields(message(value, where), where))
                variable, slot = (number(inner.get(key, 0), where) for key in (1, 3))
                name = text(inner.get(2, memoryview(b"")), where)
                slot_variables[slot] = variable, name
    slots = {
        keys[slot]: ObjectSlot(keys[variable], name)
        for slot, (variable, name) in slot_variables.items()
        if variable in keys and slot in keys
    }
    return ObjectGraph(full_names, slots)
