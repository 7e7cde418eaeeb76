"""A graph with its variables' values, exported to ONNX by tf2onnx."""

import numpy as np

OPSET = 17


def export(tf, session, constants, inputs, outputs):
    """(the bytes of the model, "") or (None, the reason).

    Args:
        constants: {tensor: value} that become part of it.
        inputs: tensors; the k-th is called input_k:0 in the model.
        outputs: names of tensors, which they keep in the model.
    """
    try:
        import tf2onnx
    except ImportError as error:
        return None, "{}; tf2onnx is needed beside TensorFlow".format(error)
    try:
        cut, names = _cut(tf, session.graph.as_graph_def(), constants, inputs)
        ends = sorted({name.split(":")[0] for name in outputs})
        frozen = tf.graph_util.convert_variables_to_constants(session, cut, ends)
        if not any(attr.HasField("func") for node in frozen.node for attr in node.attr.values()):
            frozen.library.Clear()  # of data sets, which tf2onnx would convert
        kept = {node.name + ":0" for node in frozen.node}
        names = [name for name in names if name in kept]  # others are not needed
        model, _ = tf2onnx.convert.from_graph_def(
            frozen, input_names=names, output_names=list(outputs), opset=OPSET
        )
        return np.frombuffer(model.SerializeToString(), np.uint8), ""
    except Exception as error:  # whatever a converter of graphs raises
        lines = str(error).strip().splitlines() or [""]
        return None, "{}: {}".format(type(error).__name__, lines[0][:300])


def _cut(tf, graph_def, constants, inputs):
    """The graph that begins at the inputs, and their names in it."""
    with tf.Graph().as_default() as graph:
        fed = {tensor.name: tf.constant(value) for tensor, value in constants.items()}
        places = [
            tf.placeholder(tensor.dtype.base_dtype, tensor.shape, "input_{}".format(k))
            for k, tensor in enumerate(inputs)
        ]
        fed.update((tensor.name, place) for tensor, place in zip(inputs, places))
        tf.import_graph_def(graph_def, input_map=fed, name="")
        return graph.as_graph_def(), [place.name for place in places]
