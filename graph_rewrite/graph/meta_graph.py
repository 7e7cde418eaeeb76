"""The collections and variables of a MetaGraphDef, and its import."""

import collections
from typing import Dict

from semisync.common.compat import VariableDef, tf
from semisync.common.errors import BadInput
from semisync.common.tensor_names import split

_VARIABLES, _GLOBAL_STEP = tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP

# Where a MetaGraph has no saver, import_meta_graph would build one in the graph.
_NO_SAVER = tf.train.SaverDef(
    filename_tensor_name="none", save_tensor_name="none", restore_op_name="none"
)


def variables(meta, key=_VARIABLES):
    """{name of its op: VariableDef} of the variables in a collection of a MetaGraphDef."""
    if key not in meta.collection_def:  # asking for it would add it
        return {}
    protos = map(VariableDef.FromString, meta.collection_def[key].bytes_list.value)
    return collections.OrderedDict((split(proto.variable_name)[0], proto) for proto in protos)


def names(meta, key):
    """The names of ops and tensors in a collection of a MetaGraphDef, a list."""
    return list(meta.collection_def[key].node_list.value) if key in meta.collection_def else []


def update_ops(meta):
    """The names of the ops in UPDATE_OPS, a list."""
    return [split(name)[0] for name in names(meta, tf.GraphKeys.UPDATE_OPS)]


def collected(meta):
    """{op: whether an output of it is named} for all names in the collections."""
    outputs: Dict[str, bool] = {}
    for collection in meta.collection_def.values():
        for name in collection.node_list.value:
            op = split(name)[0]
            outputs[op] = outputs.get(op, False) or ":" in name
    return outputs


def add_to_collection(meta, key, values):
    """Appends strings to a collection of names, or bytes to one of protos."""
    if not values:
        return
    collection = meta.collection_def[key]
    if isinstance(values[0], bytes):
        collection.bytes_list.value.extend(values)
    else:
        collection.node_list.value.extend(values)


def imported(meta):
    """A new tf.Graph of a MetaGraphDef; it collects the global variables and the global step alone.

    Raises:
        BadInput: TensorFlow cannot import it.
    """
    copy = tf.MetaGraphDef(  # the import changes its argument
        meta_info_def=meta.meta_info_def, graph_def=meta.graph_def, saver_def=_NO_SAVER
    )
    for key in (_VARIABLES, _GLOBAL_STEP):
        if key in meta.collection_def:
            copy.collection_def[key].CopyFrom(meta.collection_def[key])
    with tf.Graph().as_default() as graph:
        try:
            tf.train.import_meta_graph(copy)
        except (ValueError, KeyError, TypeError, tf.errors.OpError) as error:
            raise BadInput(
                "TensorFlow {} cannot import the MetaGraph; rewrite it with the job's own "
                "TensorFlow: {:.300}".format(tf.__version__, str(error).strip().splitlines()[0])
            ) from error
    return graph
