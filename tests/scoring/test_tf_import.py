"""A model with ops that TensorFlow alone does not know: --tf-import names the module with them."""

import pathlib

import numpy as np
import pyarrow.parquet
import pytest

from semisync.cli import main


def through_the_resampler(meta):
    """A MetaGraph with an output "resampled", the logits by way of an op of tf.contrib.

    At place (0, 0) of an image of one point the op returns that point.
    """
    import tensorflow
    from tensorflow.core.framework.attr_value_pb2 import AttrValue
    from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef

    graph = MetaGraphDef.FromString(meta)
    float32, int32 = AttrValue(type=1), AttrValue(type=3)

    def add(op, name, *inputs, **attributes):
        node = graph.graph_def.node.add(op=op, name=name, input=inputs)
        for key, value in attributes.items():
            node.attr[key].CopyFrom(value)

    def constant(name, value):
        tensor = tensorflow.make_tensor_proto(value, tensorflow.int32)
        add("Const", name, dtype=int32, value=AttrValue(tensor=tensor))

    constant("image", [-1, 1, 1, 1])
    constant("axis", 1)
    add("Reshape", "images", "logits", "image", T=float32, Tshape=int32)
    add("ZerosLike", "zeros", "logits", T=float32)
    two = {"T": float32, "Tidx": int32, "N": AttrValue(i=2)}
    add("ConcatV2", "places", "zeros", "zeros", "axis", **two)
    add("Resampler", "resampled", "images", "places", T=float32)
    return graph.SerializeToString()


@pytest.fixture
def arguments(tf1_models, tmp_path):
    """Those of the checkpoint with the added op."""
    path = tmp_path / "contrib.meta"
    plain = pathlib.Path(str(tf1_models.folder / "model.ckpt.meta"))
    path.write_bytes(through_the_resampler(plain.read_bytes()))
    return [*tf1_models.checkpoint[:-1], "resampled", "--meta", str(path)]


def test_the_module_is_imported_before_the_model_is_opened(arguments, tf1_models, data, tmp_path):
    out = tmp_path / "out.parquet"
    contrib = ["--tf-import", "tensorflow.contrib.resampler"]
    assert main(["score", data, *arguments, *contrib, "--out", str(out)]) == 0
    scores = pyarrow.parquet.read_table(out)["score"]
    assert np.array_equal(scores, tf1_models.expected["logits"])


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ([], "Op type not registered 'Resampler'"),
        (["--tf-import", "absent.ops"], "ModuleNotFoundError: No module named 'absent'"),
    ],
)
def test_what_is_not_there_is_named(arguments, data, tmp_path, capsys, option, sentence):
    out = tmp_path / "out.parquet"
    assert main(["score", data, *arguments, *option, "--out", str(out)]) == 3
    error = capsys.readouterr().err
    assert sentence in error
    assert not out.exists()
