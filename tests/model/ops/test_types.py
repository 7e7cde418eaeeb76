"""The data types of outputs are those of TensorFlow's op definitions."""

import pytest
import tensorflow
from tensorflow.python.framework import dtypes, op_def_registry

from migrate.model.ops.registry import OPS
from migrate.model.ops.types import TYPES

# A Python list stands for what TensorFlow passes on as a number, or a handle.
FLOWS = {"TensorArrayV3", "TensorArrayWriteV3", "TensorArrayScatterV3", "TensorArraySplitV3"}

OF_1 = {"GatherTree"}  # of contrib


def defined(op):
    """What TYPES should say of an op."""
    getattr(tensorflow.raw_ops, op)
    definition = op_def_registry.get(op)
    defaults = {
        attr.name: "=" + dtypes.as_dtype(attr.default_value.type).name
        for attr in definition.attr
        if attr.type == "type" and attr.HasField("default_value")
    }
    outputs = []
    for output in definition.output_arg:
        named = output.type_attr or output.type_list_attr
        fixed = None if named else dtypes.as_dtype(output.type).name
        outputs.append(fixed or named + defaults.get(named, ""))
    while len(outputs) > 1 and outputs[-1] == outputs[-2]:
        outputs.pop()
    return " ".join(outputs)


@pytest.mark.parametrize("op", sorted(set(OPS) - FLOWS - OF_1))
def test_the_types_of_outputs_are_tensorflows(op):
    assert TYPES.get(op, "T") == defined(op)
