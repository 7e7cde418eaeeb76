"""What depends on constants alone is computed during the conversion, as TensorFlow computes it."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
import torch

from migrate.model.load import load_model
from tests.model.features import outputs_of

raw = tf.raw_ops


@pytest.mark.parametrize("out_type", ["int32", "int64"])
def test_a_size_of_a_constant_has_the_type_that_the_graph_says(out_type, tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.placeholder(tf.float32, [2], "x")
        constant = tf.zeros([2, 3])
        found = [raw.Shape(input=constant, out_type=out_type)]
        found += raw.ShapeN(input=[constant], out_type=out_type)
        found += [raw.Size(input=constant, out_type=out_type), raw.Rank(input=constant)]
        names = [tf.identity(one, f"y{k}").op.name for k, one in enumerate(found)]
        tf.multiply(x, 2.0, "z")
        expected = session.run([f"{name}:0" for name in names])
    (tmp_path / "graph.pb").write_bytes(graph.as_graph_def().SerializeToString())
    module = load_model(str(tmp_path / "graph.pb"), output=["z", *names])
    _, *values = outputs_of(module, {"x": torch.ones(2)})
    for value, array in zip(values, expected):
        assert value.dtype == array.dtype
        np.testing.assert_array_equal(value, array)
