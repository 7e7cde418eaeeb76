"""Graphs exported with strip_default_attrs: nodes lack attributes that have their op's default."""

import pathlib
import shutil

import pytest
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.python.framework.meta_graph import strip_graph_default_valued_attrs

import migrate
from semisync import cli
from semisync.common.compat import tf
from tests.model.zoo.read import models


def strip(meta):
    """Strips the MetaGraph in a file; returns how many bytes shorter it is."""
    graph = MetaGraphDef.FromString(meta.read_bytes())
    strip_graph_default_valued_attrs(graph)
    return len(meta.read_bytes()) - meta.write_bytes(graph.SerializeToString())


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["conv", "conv_slim"])
def test_a_model_with_batch_norms_is_that_of_the_whole_graph(name, zoo, tmp_path):
    (model,) = [model for model in models(zoo) if model.said["name"] == name]
    shutil.copytree(model.folder, tmp_path / "stripped")
    assert strip(tmp_path / "stripped" / pathlib.Path(model.meta).name) > 0
    prefix = str(tmp_path / "stripped" / pathlib.Path(model.prefix).name)
    assert cli.main(["convert", prefix, str(tmp_path / "out"), "--model"]) == 0
    assert (tmp_path / "out" / "model.py").read_text() == migrate.load_model(model.prefix).source


def test_a_one_hot_of_a_fixed_batch_takes_any_number_of_rows(tmp_path):
    with tf.Graph().as_default():
        bucket = tf.placeholder(tf.int64, [8], "bucket")
        rows = tf.one_hot(bucket, 5) * tf.constant([[0.5, 1.0, 1.5, 2.0, 2.5]])
        tf.sigmoid(tf.reduce_sum(rows, 1), name="score")
        meta = tf.train.export_meta_graph()
    for folder in ("whole", "stripped"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "graph.pb").write_bytes(meta.graph_def.SerializeToString())
        strip_graph_default_valued_attrs(meta)
    whole, stripped = (
        migrate.load_model(str(tmp_path / folder / "graph.pb")).source
        for folder in ("whole", "stripped")
    )
    assert whole == stripped
