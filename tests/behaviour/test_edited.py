"""`semisync verify --steps` trains model.py as it lies there, whatever was made of it."""

import json
import re
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import tensorflow.compat.v1 as tf

from semisync import cli
from tests.model.training.graphs import X, Y, regression, saved
from tests.support.require import forked_tensorflow

ROWS = 24


def network():
    """A table with masks per row, a BatchNorm, a dropout."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    item = tf.placeholder(tf.int64, [None], name="item")
    tf.reduce_sum(x, 1, name="total")
    found = tf.nn.embedding_lookup(tf.get_variable("items", [20, 4]), item)
    found = tf.nn.dropout(found, rate=0.2, noise_shape=[tf.shape(found)[0], 1])
    net = tf.layers.dense(tf.concat([found, x], 1), 8, name="deep")
    net = tf.layers.batch_normalization(net, training=True, name="norm")
    return tf.layers.dropout(tf.nn.relu(net), 0.3, training=True)


def head(net, name, begins=0.0):
    """The logits NAME and their probabilities P_NAME."""
    begins = tf.constant_initializer(begins)
    logits = tf.layers.dense(net, 1, bias_initializer=begins, name=f"{name}_out")
    logits = tf.squeeze(logits, 1, name=name)
    tf.sigmoid(logits, name=f"p_{name}")
    return logits


def job():
    """Its training op: of a click, whose probabilities are 1 after rounding, and of a purchase."""
    net = network()
    heads = [head(net, "click", 30.0), head(net, "buy")]
    y = tf.placeholder(tf.float32, [None], name="y")
    losses = [tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=one) for one in heads]
    kernel = next(one for one in tf.trainable_variables() if one.name == "deep/kernel:0")
    loss = tf.reduce_mean(tf.add_n(losses)) + 0.1 * tf.nn.l2_loss(kernel)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return tf.train.AdagradOptimizer(0.1).minimize(loss)


class Job:
    """A job's checkpoint and rows; what is converted goes to folders of their own."""

    def __init__(self, folder, build=job):
        random = np.random.default_rng(0)
        rows = {
            "x": random.normal(size=(ROWS, 2)).astype("f"),
            "item": random.integers(0, 20, ROWS),
            "y": random.integers(0, 2, ROWS).astype("f"),
        }
        feeds = {f"{name}:0": values for name, values in rows.items()}
        self.folder, self.prefix = folder, saved(folder, build, feeds)
        self.data = str(folder / "rows.parquet")
        columns = {name: values.tolist() for name, values in rows.items()}
        pyarrow.parquet.write_table(pa.table(columns), self.data)

    def converted(self, *outputs):
        out = self.folder / "-".join(outputs)
        if not out.exists():
            named = [f"--output={one}" for one in outputs]
            assert cli.main(["convert", self.prefix, str(out), "--model", *named]) == 0
        return out

    def steps(self, out, capsys, text=False):
        """(exit code, what was printed): a report, or text."""
        capsys.readouterr()
        arguments = ["--steps", "2", "--data", self.data, "--batch-size", "12"]
        arguments += [] if text else ["--json"]
        arguments += ["--tf-python", forked_tensorflow(sys.executable)]
        code = cli.main(["verify", self.prefix, str(out), *arguments])
        said = capsys.readouterr()
        if text or code not in (0, 1):
            return code, said.out + said.err
        return code, json.loads(said.out)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return Job(tmp_path_factory.mktemp("edited"))


def edited(trained, folder, old, new, outputs=("p_click", "p_buy")):
    """A conversion with an edit in its model.py."""
    out = shutil.copytree(trained.converted(*outputs), folder / "edited")
    path = out / "model.py"
    text = path.read_text()
    assert text.count(old) == 1, text
    path.write_text(text.replace(old, new))
    return out


@pytest.mark.few(1)
@pytest.mark.parametrize("outputs", [("p_click", "p_buy"), ("click", "buy")])
def test_as_it_was_written_it_takes_tensorflows_steps(trained, outputs, capsys):
    """Whether it gives probabilities or logits; the loss reads logits."""
    code, found = trained.steps(trained.converted(*outputs), capsys)
    assert code == 0, found
    assert (found["exceeded"], found["unchecked"]) == (None, [])
    of_variables = {"parameter": 9, "gradient": 9, "slot": 9, "statistic": 2}
    assert found["compared"] == {"loss": 1, **of_variables, "dropout": 2}


EDITS = {
    "a look-up without a gradient": (
        'embeddings_4_found["item"]',
        'embeddings_4_found["item"].detach()',
        ("gradient", "items"),
    ),
    "another momentum": ("momentum=0.01", "momentum=0.02", ("statistic", "norm/moving_")),
    "another rate": ("relu, 0.3, self.training", "relu, 0.5, self.training", ("dropout", "drop")),
    "no dropout": ("F.dropout(relu, 0.3, self.training)", "relu", ("dropout", "drop")),
    "one more dropout": (
        "self.buy_out(dropout_1)",
        "self.buy_out(F.dropout(dropout_1, 0.3, self.training))",
        ("dropout", "at 0.3, which TensorFlow lacks"),
    ),
    "dropout of other values": (
        "F.dropout(relu, 0.3, self.training)",
        "F.dropout(relu - 1, 0.3, self.training) + 1",
        ("dropout", "drop"),
    ),
    "masks of another shape": (
        "torch.ones(random_uniform)",
        "torch.ones_like(embedding_lookup)",
        ("dropout", "drop"),
    ),
    "a net that is constant while it trains": (
        "p_buy = torch.sigmoid(",
        "p_buy = torch.sigmoid((0 if self.training else 1) * ",
        ("loss", "loss"),
    ),
    "a layer that is frozen": (
        "self.buy_out = nn.Linear(8, 1)",
        "self.buy_out = nn.Linear(8, 1).requires_grad_(False)",
        ("gradient", "buy_out/"),
    ),
}


@pytest.mark.parametrize("what", sorted(EDITS))
@pytest.mark.few(1)
def test_an_edit_that_trains_otherwise_is_found(trained, tmp_path, what, capsys):
    old, new, (kind, name) = EDITS[what]
    code, found = trained.steps(edited(trained, tmp_path, old, new), capsys)
    assert code == 1, found
    assert (found["exceeded"]["kind"], found["exceeded"]["step"]) == (kind, 1)
    assert name in found["exceeded"]["name"]


@pytest.mark.long
def test_what_of_the_loss_is_not_the_models_is_said(trained, capsys):
    code, found = trained.steps(trained.converted("p_buy"), capsys)
    assert code == 0, found
    names = "click_out/bias, click_out/kernel"
    told = f"how model.py trains {names}, which the loss reads past it"
    assert found["unchecked"] == [told]
    lines = trained.steps(trained.converted("p_buy"), capsys, text=True)[1].splitlines()
    assert lines[-1].endswith(f"is beyond 1e-05; not checked: {told}")


@pytest.mark.long
def test_a_parameter_that_the_graph_lacks_is_said(trained, tmp_path, capsys):
    out = edited(trained, tmp_path, "F.dropout(relu,", "F.dropout(relu + self.more,")
    text = (out / "model.py").read_text()
    made = "        self.more = nn.Parameter(torch.zeros(8))\n"
    text = text.replace("        self.deep = ", f"{made}        self.deep = ")
    (out / "model.py").write_text(text)
    code, found = trained.steps(out, capsys)
    assert code == 0, found
    assert found["unchecked"] == ["how model.py trains more, which the graph lacks"]


@pytest.mark.long
def test_without_a_model_py_the_steps_are_the_graphs(trained, tmp_path, capsys):
    out = tmp_path / "out"
    assert cli.main(["convert", trained.prefix, str(out)]) == 0
    code, found = trained.steps(out, capsys)
    assert code == 0, found
    told = f"model.py, which {out} lacks: the steps are those of the graph's own formulas"
    assert found["unchecked"] == [told]


@pytest.mark.long
@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (
            ("p_buy = torch.sigmoid(", "p_buy = torch.special.expit("),
            "gives 'p_buy' as no sigmoid of torch's, and the graph's loss reads what that is of",
        ),
        (("return p_click, p_buy", "return p_click"), "gives 1 outputs, and OUTPUTS lists 2"),
        (
            (
                "p_buy = torch.sigmoid(self.buy_out(dropout_1)",
                "p_buy = torch.sigmoid(dropout_1[:, :2]",
            ),
            "the graph's loss of what",
        ),
        (("= torch.sigmoid(self.buy_out", "= torch.sigmoid(self.buy"), "'Model' object has no"),
    ],
)
def test_an_edit_that_cannot_be_compared_is_a_sentence(trained, tmp_path, edit, sentence, capsys):
    code, error = trained.steps(edited(trained, tmp_path, *edit), capsys)
    assert code == 3
    assert sentence in error
    assert error.count("\n") == 1


def test_a_variable_that_model_py_no_longer_has_is_a_difference(trained, tmp_path, capsys):
    entry = '    "buy_out.bias": runtime.Variable("buy_out/bias"),\n'
    code, found = trained.steps(edited(trained, tmp_path, entry, ""), capsys)
    assert code == 1
    assert "model.py lacks the variable 'buy_out/bias'" in found["lost"]


def test_an_output_that_the_loss_does_not_come_from_is_refused(trained, capsys):
    code, error = trained.steps(trained.converted("total"), capsys)
    assert code == 3
    assert "does not depend on what" in error and "total, so that its steps" in error


def test_a_model_to_which_nothing_comes_back_is_a_difference(tmp_path, capsys):
    def build():
        return tf.train.AdamOptimizer(0.1).minimize(regression()[0])

    prefix, out, data = saved(tmp_path, build), tmp_path / "out", str(tmp_path / "rows.parquet")
    pyarrow.parquet.write_table(pa.table({"x": X.tolist(), "y": Y.tolist()}), data)
    assert cli.main(["convert", prefix, str(out), "--model", "--output", "strided_slice:0"]) == 0
    path = out / "model.py"
    text, returns = re.subn(r"return (strided_slice\w*)", r"return \1.detach()", path.read_text())
    assert returns == 1
    path.write_text(text)
    capsys.readouterr()
    arguments = ["--steps", "1", "--data", data, "--tf-python", forked_tensorflow(sys.executable)]
    assert cli.main(["verify", prefix, str(out), *arguments]) == 1
    assert "of the gradient, weight after step 1" in capsys.readouterr().out
