"""model.py has no line that does nothing, and names that say what a value is."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from migrate.model.load import load_model
from tests.model.features import outputs_of
from tests.model.zoo.read import models

tf = pytest.importorskip("tensorflow").compat.v1


def saved(folder, build, feeds):
    """A model of what `build` gives for placeholders, and what TensorFlow gives for `feeds`."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(1)
        given = {
            name: tf.placeholder(value.dtype, [None, *value.shape[1:]], name)
            for name, value in feeds.items()
        }
        tf.identity(build(**given), name="y")
        session.run(tf.global_variables_initializer())
        expected = session.run("y:0", {f"{name}:0": value for name, value in feeds.items()})
        prefix = tf.train.Saver().save(session, str(folder / "model"))
    module = load_model(prefix, output="y")
    found = outputs_of(module, {name: torch.tensor(value) for name, value in feeds.items()})[0]
    np.testing.assert_allclose(found, expected, 1e-6, 1e-6)
    return module, found, expected


def forward(module):
    """The lines after the inputs."""
    return module.source.partition("    def forward(self, inputs):\n")[2].partition("\n\n")[0]


def variable(shape=()):
    return tf.get_variable("w", shape)


CHANGES_NOTHING = {
    "integers plus 0": (
        lambda n: tf.cast(0 + (n + 0), tf.float32) * variable(),
        np.int64([[1], [2]]),
    ),
    "times 1": (lambda n: 1.0 * n * 1.0 / 1.0 - 0.0 + variable(), np.float32([[1], [2]])),
    "its own shape": (
        lambda n: tf.reshape(n, [tf.shape(n)[0], 2]) + tf.reshape(n, [-1, 2]) * variable(),
        np.float32([[1, 3], [2, 4]]),
    ),
    "axes in their order": (
        lambda n: tf.tile(tf.transpose(n, [0, 1, 2]), [1, 1, 1]) * variable(),
        np.float32([[[1], [3]]]),
    ),
}


@pytest.mark.parametrize("name", CHANGES_NOTHING)
def test_what_changes_nothing_is_not_written(name, tmp_path):
    build, value = CHANGES_NOTHING[name]
    text = forward(saved(tmp_path, build, {"n": value})[0])
    for word in ("+ 0", "0 +", "* 1", "1.0 *", "/ 1.0", "- 0.0", "reshape", "permute", "tile"):
        assert word not in text, text


def test_a_zero_that_changes_the_sign_of_a_zero_is_written(tmp_path):
    _, found, expected = saved(
        tmp_path, lambda n: 1.0 / (n + 0.0) + variable(), {"n": np.float32([[-0.0]])}
    )
    assert found == expected == [[np.inf]]


CHANGES_THE_SHAPE = {
    "rows of another length": (
        lambda n: tf.reshape(n, [-1, 3]),
        np.float32([[1, 2], [3, 4], [5, 6]]),
    ),
    "two axes more": (lambda n: tf.reshape(n, [-1, 1, 2, 1]), np.float32([[1, 2]])),
    "the size of another axis": (
        lambda n: tf.reshape(n, [tf.shape(n)[1], 2]),
        np.float32([[1, 2], [3, 4]]),
    ),
    "rows of another tensor's number": (
        lambda n: tf.reshape(n, [tf.shape(tf.concat([n, n], 0))[0], -1]),
        np.float32([[1, 2], [3, 4]]),
    ),
    "the size of another tensor": (
        lambda n: tf.reshape(n, [tf.shape(tf.concat([n, n], 1))[0], 2]),
        np.float32([[1, 2], [3, 4]]),
    ),
}


@pytest.mark.parametrize("name", CHANGES_THE_SHAPE)
def test_another_shape_is_written(name, tmp_path):
    build, value = CHANGES_THE_SHAPE[name]
    text = forward(saved(tmp_path, lambda n: build(n) * variable(), {"n": value})[0])
    assert "reshape(" in text


PLAIN_SHAPES = {
    "an axis more": (lambda n: tf.reshape(n, [-1, 2, 3, 1]), ".unsqueeze(3)"),
    "an axis less": (lambda n: tf.reshape(n[:, :, :1], [tf.shape(n)[0], 2]), ".squeeze(2)"),
    "each row flat": (lambda n: tf.reshape(n, [tf.shape(n)[0], -1]), ".flatten(1)"),
    "rows of what there are": (lambda n: tf.reshape(n, [tf.shape(n)[0], 6]), ".reshape(-1, 6)"),
    "turned": (lambda n: tf.transpose(n, [0, 2, 1]), ".mT"),
    "a matrix turned": (lambda n: tf.transpose(n[:, 0]), ".T"),
    "one part": (lambda n: tf.split(n, 1, axis=2)[0], 'inputs["n"] * self.w'),
}


@pytest.mark.parametrize("name", PLAIN_SHAPES)
def test_a_shape_is_written_plainly(name, tmp_path):
    build, expected = PLAIN_SHAPES[name]
    value = np.random.RandomState(0).randn(4, 2, 3).astype("f")
    text = forward(saved(tmp_path, lambda n: build(n) * variable(), {"n": value})[0])
    assert expected in text and "shape[" not in text and "split" not in text


PLAIN_CHOICES = {
    "between bounds": (lambda n: tf.clip_by_value(n, -0.5, 0.5), ".clamp(-0.5, 0.5) *"),
    "bounds that cross": (lambda n: tf.maximum(tf.minimum(n, -1.0), 1.0), ".clamp(min=1.0) *"),
    "below a number": (lambda n: tf.minimum(0.0, n), "runtime.minimum(0.0, inputs["),
    "padding of a mask's shape": (
        lambda n: tf.where(tf.equal(n * 2.0, 0), tf.ones_like(n * 2.0) * 9.0, n),
        "torch.where(n * 2.0 == 0.0, 9.0, n)",
    ),
}


@pytest.mark.parametrize("name", PLAIN_CHOICES)
def test_a_choice_of_values_is_written_plainly(name, tmp_path):
    build, expected = PLAIN_CHOICES[name]
    value = np.float32([[-2.0, 0.25, 0.0], [np.nan, -0.25, 3.0]])
    text = forward(saved(tmp_path, lambda n: build(n) * variable(), {"n": value})[0])
    assert expected in text and "torch.full" not in text and "torch.tensor" not in text


@pytest.mark.parametrize("axes", [3, 4])
def test_a_layer_over_more_axes_than_two_is_a_linear_one(axes, tmp_path):
    value = np.random.RandomState(0).randn(2, *range(3, axes + 1), 5).astype("f")

    def build(n):
        kernel, bias = tf.get_variable("deep/kernel", [5, 7]), tf.get_variable("deep/bias", [7])
        return tf.nn.relu(tf.nn.bias_add(tf.tensordot(n, kernel, [[axes - 1], [0]]), bias))

    module = saved(tmp_path, build, {"n": value})[0]
    assert "self.deep = nn.Linear(5, 7)\n" in module.source
    assert "torch.relu(self.deep(inputs[" in module.source


def moments(n, kept=True):
    return tf.nn.moments(n, [-1], keep_dims=kept)


def norm_by_hand(n, gamma, beta):
    mean, variance = moments(n)
    return gamma * (n - mean) / (variance + 1e-5) ** 0.5 + beta


def norm_of_the_last_product(n, gamma, beta):
    mean, variance = moments(n)
    return gamma * ((n - mean) / tf.sqrt(variance + 1e-5)) + beta


def norm_by_the_inverse(n, gamma, beta):
    mean, variance = moments(n)
    return (n - mean) * (gamma * tf.rsqrt(variance + 1e-5)) + beta


def norm_of_tensorflow(n, gamma, beta):
    mean, variance = moments(n)
    return tf.nn.batch_normalization(n, mean, variance, beta, gamma, 1e-5)


@pytest.mark.parametrize(
    "build", [norm_by_hand, norm_of_the_last_product, norm_by_the_inverse, norm_of_tensorflow]
)
def test_a_normalised_last_axis_is_a_layer_norm(build, tmp_path):
    value = np.random.RandomState(0).randn(3, 4, 5).astype("f")

    def layer(n):
        gamma, beta = tf.get_variable("ln/gamma", [5]), tf.get_variable("ln/beta", [5])
        return tf.nn.relu(build(n, gamma, beta))

    module = saved(tmp_path, layer, {"n": value})[0]
    assert "self.ln = nn.LayerNorm(5, eps=1e-05)\n" in module.source
    assert "torch.relu(self.ln(inputs[" in module.source


def test_another_axis_or_another_gamma_is_no_layer_norm(tmp_path):
    value = np.random.RandomState(0).randn(3, 5, 5).astype("f")

    def layer(n):
        gamma, beta = tf.get_variable("ln/gamma", [1]), tf.get_variable("ln/beta", [5])
        mean, variance = tf.nn.moments(n, [1], keep_dims=True)
        other = beta * (n - mean) / (variance + 1e-5) ** 0.5 + beta
        return norm_by_hand(n, gamma, beta) + other

    assert "LayerNorm" not in saved(tmp_path, layer, {"n": value})[0].source


def test_a_normalisation_without_its_gradient_is_no_layer_norm(tmp_path):
    def layer(n):
        gamma, beta = tf.get_variable("ln/gamma", [5]), tf.get_variable("ln/beta", [5])
        mean, variance = moments(n)
        return gamma * tf.stop_gradient((n - mean) / tf.sqrt(variance + 1e-5)) + beta

    value = np.random.RandomState(0).randn(3, 4, 5).astype("f")
    assert "LayerNorm" not in saved(tmp_path, layer, {"n": value})[0].source


def test_a_kernel_of_one_step_is_a_product(tmp_path):
    value = np.random.RandomState(0).randn(2, 4, 5).astype("f")

    def layer(n):
        kernel = tf.get_variable("conv/kernel", [1, 5, 7])
        return tf.nn.relu(tf.nn.conv1d(n, kernel, 1, "SAME"))

    assert " @ self.conv_kernel[0])" in saved(tmp_path, layer, {"n": value})[0].source


PADDINGS = {
    "ones times a number": lambda n: tf.ones_like(n) * (-(2.0**32) + 1),
    "zeros": lambda n: tf.zeros_like(n),
    "a number": lambda n: tf.fill(tf.shape(n), -5.0),
}


@pytest.mark.parametrize("name", PADDINGS)
def test_a_tensor_full_of_one_number_is_that_number_in_a_choice(name, tmp_path):
    value = np.float32([[1, -3], [-2, 4]])

    def build(n):
        padding = PADDINGS[name](n)
        chosen = tf.where(n > 0.0, n, padding)
        return tf.where(chosen < 3.0, padding, chosen) * variable()

    text = forward(saved(tmp_path, build, {"n": value})[0])
    assert text.count("torch.where(") == 2 and "_like(" not in text and "torch.full(" not in text


def test_a_product_along_another_axis_is_no_linear_layer(tmp_path):
    value = np.random.RandomState(0).randn(2, 5, 5).astype("f")

    def build(n):
        return tf.tensordot(n, tf.get_variable("kernel", [5, 5]), [[1], [0]])

    assert ".mT" in forward(saved(tmp_path, build, {"n": value})[0])


def test_equal_branches_are_one(zoo):
    (model,) = [model for model in models(zoo) if model.said["name"] == "deepfm"]
    assert "if self.training" not in load_model(model.prefix).source


def test_what_a_scope_gives_is_called_as_the_scope(zoo):
    by_name = {model.said["name"]: model for model in models(zoo)}
    source = load_model(by_name["canned_dnn"].prefix).source
    assert "        city_x_hour_embedding = " in source and "        user_ids = " in source
    assert 'feature_names=["user"]' in source and "iterator_get_next_" not in source.partition(
        "def forward"
    )[2].replace("iterator_get_next_7", "")


@pytest.mark.long
def test_every_import_and_every_name_is_used(zoo, tmp_path):
    for model in models(zoo):
        outputs = list(model.said["outputs"].values())
        path = tmp_path / (model.said["name"] + ".py")
        path.write_text(load_model(model.prefix, output=outputs).source)
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "F", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
