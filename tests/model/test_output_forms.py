"""Outputs that are shapes, sizes or of the batch's size alone, and outputs that are named twice."""

import numpy as np
import pytest
import torch

import migrate
from tests.model.features import outputs_of

tf = pytest.importorskip("tensorflow").compat.v1

FORMS = {
    "shape": lambda x, w: [tf.shape(x)],
    "shape of what is computed": lambda x, w: [tf.shape(tf.matmul(x, w))],
    "size": lambda x, w: [tf.size(x)],
    "size of the batch": lambda x, w: [tf.shape(x)[0]],
    "sizes from the second on": lambda x, w: [tf.shape(x)[1:]],
    "arithmetic on sizes": lambda x, w: [tf.shape(x)[0] * 2 + 1],
    "size as a number": lambda x, w: [tf.cast(tf.shape(x)[0], tf.float32) / 4.0],
    "zeros": lambda x, w: [tf.zeros([tf.shape(x)[0], 2])],
    "fill": lambda x, w: [tf.fill(tf.shape(x), 3.0)],
    "range": lambda x, w: [tf.range(tf.shape(x)[0])],
    "ones like": lambda x, w: [tf.ones_like(x[:, 0])],
    "stack of sizes": lambda x, w: [tf.stack([tf.shape(x)[0], tf.shape(w)[1]])],
    "rank": lambda x, w: [tf.rank(x)],
    "product of the shape": lambda x, w: [tf.reduce_prod(tf.shape(x))],
    "tile": lambda x, w: [tf.tile([[1.0, 2.0]], [tf.shape(x)[0], 1])],
    "scores and their shape": lambda x, w: (lambda y: [y, tf.shape(y)])(tf.matmul(x, w)),
    "one size twice": lambda x, w: (lambda n: [n, n])(tf.shape(x)[0]),
    "scores twice": lambda x, w: (lambda y: [y, y])(tf.matmul(x, w)),
    "scores and what reads them": lambda x, w: (lambda y: [y, y * 2.0])(tf.matmul(x, w)),
    "size and what reads it": lambda x, w: (lambda n: [n, tf.range(n)])(tf.shape(x)[0]),
    "the input": lambda x, w: [x, tf.matmul(x, w)],
    "size of what has any number": lambda x, w: [tf.shape(tf.boolean_mask(x, x[:, 0] > 0.0))[0]],
    "any number and its size": lambda x, w: (lambda y: [y, tf.size(y), tf.matmul(y, w)])(
        tf.boolean_mask(x, x[:, 0] > 0.0)
    ),
    "a split into one": lambda x, w: [tf.matmul(tf.split(x, 1, axis=1)[0], w)],
    "a split by sizes into one": lambda x, w: [tf.matmul(tf.split(x, [3], axis=1)[0], w)],
    "the only column": lambda x, w: [tf.matmul(x, w) * tf.unstack(x[:, :1], axis=1)[0][:, None]],
    "the only size": lambda x, w: [tf.fill([tf.unstack(tf.shape(x)[:1])[0], 2], 3.0)],
    "the only field": lambda x, w: [tf.io.decode_csv(tf.as_string(x[:, 0]), [[0.0]])[0] * 2.0],
    "text's shape": lambda x, w: [tf.shape(tf.as_string(x))],
}


@pytest.mark.few(10)
@pytest.mark.parametrize("form", sorted(FORMS))
def test_an_output_of_any_form_is_what_tensorflow_gives(form, tmp_path):
    directory = str(tmp_path / "export")
    rows = np.random.RandomState(0).normal(size=(5, 3)).astype(np.float32)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 3], name="x")
        w = tf.get_variable("w", initializer=np.float32([[1, 2], [3, 4], [5, 6]]))
        results = FORMS[form](x, w)
        session.run(tf.global_variables_initializer())
        expected = session.run(results, {x: rows})
        named = {f"result_{place}": result for place, result in enumerate(results)}
        tf.saved_model.simple_save(session, directory, {"x": x}, named)
    found = outputs_of(migrate.load_model(directory), {"x": torch.tensor(rows)})
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6)
