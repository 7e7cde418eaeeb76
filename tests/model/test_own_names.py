"""An input answers to its tensor's name, too."""

import numpy as np
import pytest
import torch

import migrate
from tests.model.features import outputs_of

tf = pytest.importorskip("tensorflow").compat.v1


@pytest.mark.parametrize("key", ["x", "x:0"])
def test_a_placeholder_answers_to_its_tensors_name(key, tmp_path):
    rows = np.float32([[1, 2, 3], [4, 5, 6]])
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        weights = tf.get_variable("w", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
        scores = tf.matmul(x, weights, name="scores")
        session.run(tf.global_variables_initializer())
        expected = session.run(scores, {x: rows})
        prefix = tf.train.Saver().save(session, str(tmp_path / "model.ckpt"))
    module = migrate.load_model(prefix, output="scores")
    (found,) = outputs_of(module, {key: torch.tensor(rows)})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
