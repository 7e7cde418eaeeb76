"""The graph of a SavedModel, a checkpoint or a frozen graph: opened in a session, and its required
feeds.

Two things that an older TensorFlow wrote into a graph may prevent a later one from importing it,
and neither affects the results. They are removed then: the shapes in `_output_shapes`, if the later
one infers others, and a version such as 0.12.head.

A training graph takes its rows from ops of its own, which must be fed instead: an uninitialized
iterator fails with a message of many lines, a queue that is not filled waits forever, and a working
one would score other rows than the data's.
"""

import os
import tempfile

from .inputs import SPARSE
from .messages import Refused, listing, sizes

_SHAPES = "_output_shapes"
_TABLES = ("InitializeTable", "LookupTableImport")  # how the ops begin that fill one
_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_KINDS = {"Iterator": "an iterator", "Queue": "a queue", "Reader": "a reader"}


def open_model(tf, spec):
    """(session, signature) of the spec of `opened.Opened`; only a SavedModel has a signature.

    Raises:
        Refused, Exception: it is not supported, or TensorFlow raises an error.
    """
    if spec["kind"] != "saved_model":
        return _checkpoint(tf, spec), None
    try:
        return _saved_model(tf, spec, spec["path"])
    except ValueError as error:
        if _SHAPES not in str(error):
            raise
    with tempfile.TemporaryDirectory() as folder:
        _copy_without_shapes(spec["path"], folder)
        return _saved_model(tf, spec, folder)


def refuse_unfed(output, fed):
    """Raises Refused if the tensor `output` depends on rows that the graph itself reads."""
    found = [(_kind(tensor.op), tensor) for tensor in _behind(output, fed)]
    own = [(kind, tensor.op.name, tensor.name) for kind, tensor in found if kind is not None]
    if own:
        kind, name, _ = own[0]
        names = {tensor for _, op, tensor in own if op == name}
        tensors = map(output.graph.get_tensor_by_name, names)
        raise Refused(
            "the output {!r} takes its rows from {}, {!r}; feed its tensors with --input "
            "COL=TENSOR: {}".format(output.name, kind, name, listing(map(_described, tensors)))
        )


def depends_on(output, tensors, fed):
    """Whether `output` depends on one of the tensors, given that others are fed."""
    names = {tensor.name for tensor in tensors} - {tensor.name for tensor in fed}
    return any(tensor.name in names for tensor in _behind(output, fed))


def makes_rows(output, rows, fed):
    """Whether a reshape before `output` turns any number of rows into `rows`.

    The rule is that of `migrate.graph.interface.rows`.
    """
    from tensorflow.python.framework.tensor_util import constant_value

    for tensor in _behind(output, fed):
        if tensor.op.type == "Reshape" and tensor.op.inputs[0].shape.ndims:
            size = constant_value(tensor.op.inputs[1])
            unknown = tensor.op.inputs[0].shape.as_list()[0] is None
            if unknown and size is not None and size.size and size.flat[0] == rows:
                return True
    return False


def unfed_placeholders(output, fed):
    """(name, whether it is sparse) of the placeholders that `output` needs and nothing feeds."""
    names = {t.op.name for t in _behind(output, fed) if t.op.type in _PLACEHOLDERS}
    known = {op.name for op in output.graph.get_operations() if op.type in _PLACEHOLDERS}
    known -= {tensor.op.name for tensor in fed}
    found = {}
    for name in sorted(names):
        scope, _, _ = name.rpartition("/")
        sparse = known.issuperset(scope + part for part in SPARSE)
        found[scope if sparse else name] = sparse
    return found.items()


def _behind(output, fed):
    """The tensors that `output` depends on, including itself, up to the fed ones."""
    fed = {tensor.name for tensor in fed}
    seen = set()
    waiting = [] if output.name in fed else [output]
    while waiting:
        tensor = waiting.pop()
        yield tensor
        ops = [tensor.op]
        while ops:
            op = ops.pop()
            if op.name not in seen:
                seen.add(op.name)
                # A control input gives no tensor; the inputs of its op are looked at in turn.
                ops += op.control_inputs
                waiting += [source for source in op.inputs if source.name not in fed]


def _checkpoint(tf, spec):
    meta, is_frozen = _meta_graph(tf, spec), spec["kind"] == "frozen"
    meta.meta_info_def.ClearField("tensorflow_version")
    _rewire(meta.graph_def, spec.get("nodes", {}))
    _serve(tf, meta.graph_def, spec.get("fused", {}))
    for function in meta.graph_def.library.function:
        for node in function.node_def:
            node.device = ""  # import_meta_graph clears those of the graph itself
    try:
        graph, saver = _imported(tf, meta)
    except ValueError as error:
        if _SHAPES not in str(error):
            raise
        _take_shapes_out(meta)
        graph, saver = _imported(tf, meta)
    session = tf.Session(graph=graph)
    with graph.as_default():
        session.run([tf.local_variables_initializer(), tf.tables_initializer()])
        if is_frozen:  # which has no collections, that of its tables' initialisers included
            session.run([op for op in graph.get_operations() if op.type.startswith(_TABLES)])
        else:
            (saver or tf.train.Saver()).restore(session, _stored(spec["path"]))
    return session


def _meta_graph(tf, spec):
    """The MetaGraphDef; for a frozen graph one with only its GraphDef."""
    from tensorflow.python.framework import meta_graph

    if spec["kind"] != "frozen":
        return meta_graph.read_meta_graph_file(spec["meta"])
    meta = tf.MetaGraphDef()
    with open(spec["path"], "rb") as file:
        meta.graph_def.ParseFromString(file.read())
    return meta


def _rewire(graph_def, told):
    """Replaces the ops and inputs of nodes: {name: [op, inputs]}, in the form of a GraphDef."""
    for node in graph_def.node:
        if node.name in told:
            op, inputs = told[node.name]
            if node.op != op:
                node.op = op
                node.attr.clear()
            del node.input[:]
            node.input.extend(inputs)


def _serve(tf, graph_def, statistics):
    """Makes FusedBatchNorms take these statistics: {name: [mean, variance]}."""
    for node in list(graph_def.node):
        for place, value in enumerate(statistics.get(node.name, ())):
            constant = graph_def.node.add(name="{}/served_{}".format(node.name, place), op="Const")
            constant.attr["dtype"].type = tf.float32.as_datatype_enum
            constant.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
            # After x, scale and offset: mean, then variance.
            node.input[3 + place] = constant.name
            node.attr["is_training"].b = False


def _stored(prefix):
    """The path for Saver.restore: a pattern for a checkpoint of format V1 in several tables."""
    single = any(os.path.isfile(path) for path in (prefix, prefix + ".index"))
    return prefix if single else prefix + "-?????-of-?????"


def _imported(tf, meta):
    graph = tf.Graph()
    with graph.as_default():
        return graph, tf.train.import_meta_graph(meta, clear_devices=True)


def _saved_model(tf, spec, path):
    session = tf.Session(graph=tf.Graph())
    with session.graph.as_default():
        meta = tf.saved_model.loader.load(session, spec["tags"], path)
    if spec["signature"] is None:
        return session, None
    if spec["signature"] not in meta.signature_def:
        raise Refused(
            "there is no signature {!r}; there are: {}".format(
                spec["signature"], listing(meta.signature_def)
            )
        )
    return session, meta.signature_def[spec["signature"]]


def _copy_without_shapes(path, folder):
    """Makes `folder` the same SavedModel, by links, with another graph."""
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    path, name = os.path.abspath(path), "saved_model.pb"
    for entry in os.listdir(path):
        if entry != name:
            os.symlink(os.path.join(path, entry), os.path.join(folder, entry))
    with open(os.path.join(path, name), "rb") as file:
        model = SavedModel.FromString(file.read())
    for meta in model.meta_graphs:
        _take_shapes_out(meta)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(model.SerializeToString())


def _take_shapes_out(meta):
    graph = meta.graph_def
    for nodes in [graph.node] + [function.node_def for function in graph.library.function]:
        for node in nodes:
            node.attr.pop(_SHAPES, None)


def _kind(op):
    if op.type.startswith(("IteratorGetNext", "QueueDequeue", "ReaderRead")):
        return next(words for start, words in _KINDS.items() if op.type.startswith(start))
    return None


def _described(tensor):
    shape = "of any shape" if tensor.shape.ndims is None else sizes(tensor.shape.as_list())
    return "{} ({} {})".format(tensor.name, tensor.dtype.name, shape)
