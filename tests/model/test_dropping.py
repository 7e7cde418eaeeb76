"""A graph that drops values at random whenever it runs is said to do so."""

import pytest

from semisync import cli
from tests.support.control_flow import control_flow

tf = pytest.importorskip("tensorflow").compat.v1

NOTE = "the graph drops values at random whenever it runs, in 'dropout/"


def saved(folder, trains, version):
    with control_flow(version), tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 4], name="x")
        hidden = tf.nn.dropout(x, rate=0.5, name="dropout") if trains else x
        if trains is None:
            training = tf.placeholder(tf.bool, [], name="training")
            hidden = tf.cond(training, lambda: tf.nn.dropout(x, rate=0.5), lambda: x)
        kernel = tf.get_variable("kernel", [4, 1])
        tf.identity(tf.matmul(hidden, kernel), name="logits")
        session.run(tf.global_variables_initializer())
        return tf.train.Saver().save(session, str(folder / "model"))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("trains, said", [(True, True), (False, False), (None, False)])
def test_inspect_and_convert_say_so(trains, said, version, tmp_path, capsys):
    prefix = saved(tmp_path, trains, version)
    assert cli.main(["inspect", prefix, "--graph"]) == 0
    assert (NOTE in capsys.readouterr().out) == said
    converting = ["convert", prefix, str(tmp_path / "out"), "--model", "--output", "logits"]
    assert cli.main(converting) == 0
    assert (NOTE in capsys.readouterr().out) == said
