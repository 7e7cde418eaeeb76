"""SavedModels of trained models, with what TensorFlow's session says of them.

exports/WAY/             the SavedModel: "parsed" takes serialised tf.train.Examples, "raw" and
                         "simple" take the features
exports/WAY_inputs.npz   by the tensor that is fed, sparse ones as POINT/indices|values|shape
exports/WAY_outputs.npz  by the key of the signature
"""

import os
import shutil

import numpy as np
import tensorflow.compat.v1 as tf

from tests.model.zoo import examples, feeding, log
from tests.model.zoo.graphs import session
from tests.model.zoo.model import TRAINING

ROWS = 20
SIGNATURE = {"parsed": "predict", "raw": "predict", "simple": "serving_default"}


def export(entry, graphs, prefix, folder):
    """Writes exports/; returns what model.json says of them."""
    ways = {"parsed": _parsed, "raw": _raw, "simple": _simple}
    return {
        way: _recorded(ways[way](entry, graphs, prefix, folder), way, folder)
        for way in entry.exports
    }


def _parsed(entry, graphs, prefix, folder):
    spec = tf.feature_column.make_parse_example_spec(entry.exports["parsed"](entry.vocabulary()))
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    _of_estimator(entry, receiver, folder, "parsed")
    rows = log.draw(ROWS, seed=6, odd=True)
    return {"examples": examples.serialized(rows, spec)}


def _raw(entry, graphs, prefix, folder):
    columns = entry.exports["raw"](entry.vocabulary())
    spec = tf.feature_column.make_parse_example_spec(columns)

    read = {name: graphs.built(TRAINING)[1].inputs[name] for name in sorted(spec)}

    def receiver():
        features = {}
        for name, tensor in read.items():
            placeholder = tf.sparse_placeholder if feeding.is_sparse(tensor) else tf.placeholder
            features[name] = placeholder(tensor.dtype, tensor.shape.as_list(), name)
        return tf.estimator.export.ServingInputReceiver(features, features)

    _of_estimator(entry, receiver, folder, "raw")
    rows = log.draw(ROWS, seed=6, odd=True)
    return {name: rows[name] for name in spec}


def _simple(entry, graphs, prefix, folder):
    graph, model = graphs.built(TRAINING)
    rows = log.draw(ROWS, seed=6, odd=True)
    with graph.as_default(), session() as running:
        tf.train.Saver().restore(running, prefix)
        inputs = dict(model.inputs, **{flag.tensor.op.name: flag.tensor for flag in model.flags})
        path = os.path.join(folder, "exports", "simple")
        tf.saved_model.simple_save(running, path, inputs, model.outputs)
    fed = {flag.tensor.op.name: flag.evaluation for flag in model.flags}
    return dict({name: rows[name] for name in model.inputs}, **fed)


def _of_estimator(entry, receiver, folder, way):
    exports = os.path.join(folder, "exports")
    written = entry.estimator(TRAINING)[0].export_saved_model(exports, receiver)
    shutil.move(written.decode(), os.path.join(exports, way))


def _recorded(values, way, folder):
    """Runs the SavedModel on {key of the signature's inputs: value}."""
    path = os.path.join(folder, "exports", way)
    with tf.Graph().as_default() as graph, session() as running:
        loaded = tf.saved_model.load(running, [tf.saved_model.SERVING], path)
        signature = loaded.signature_def[SIGNATURE[way]]
        inputs = {key: _tensor(graph, info) for key, info in signature.inputs.items()}
        outputs = {
            key: graph.get_tensor_by_name(info.name) for key, info in signature.outputs.items()
        }
        found = feeding.values(inputs, values)
        np.savez(path + "_inputs.npz", **found)
        np.savez(path + "_outputs.npz", **running.run(outputs, feeding.feed(inputs, found)))
        return {
            "signature": SIGNATURE[way],
            "inputs": feeding.described(inputs),
            "outputs": {key: tensor.name for key, tensor in sorted(outputs.items())},
        }


def _tensor(graph, info):
    if info.WhichOneof("encoding") != "coo_sparse":
        return graph.get_tensor_by_name(info.name)
    sparse = info.coo_sparse
    return tf.SparseTensor(
        *(
            graph.get_tensor_by_name(name)
            for name in (
                sparse.indices_tensor_name,
                sparse.values_tensor_name,
                sparse.dense_shape_tensor_name,
            )
        )
    )
