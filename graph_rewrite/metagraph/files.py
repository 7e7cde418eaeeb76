"""The file with a MetaGraph: found by a path, and read."""

import glob
import os

from google.protobuf.message import DecodeError

from graph_rewrite.metagraph.report import some
from semisync.common.compat import tf
from semisync.common.errors import BadInput


def meta_file(path):
    """The file with the MetaGraph that a path names: for a folder, that of its newest checkpoint.

    Raises:
        BadInput: it is a checkpoint's prefix, or a folder whose newest checkpoint has none.
    """
    if os.path.isfile(path + ".meta") and not os.path.isfile(path):
        raise BadInput("{} is a checkpoint's prefix: give its graph, {}.meta".format(path, path))
    if not os.path.isdir(path):
        return path
    newest = tf.train.latest_checkpoint(path)  # as its file `checkpoint` says
    if newest and os.path.isfile(newest + ".meta"):
        return newest + ".meta"
    # None is taken: without `checkpoint` nothing says which of them is the newest.
    files = sorted(glob.glob(os.path.join(glob.escape(path), "*.meta")))
    raise BadInput(
        "{} is a folder, and no file `checkpoint` in it names a checkpoint with a graph: give a "
        ".meta file{}".format(path, ", one of " + some(files) if files else ", it has none")
    )


def read(path):
    """The MetaGraphDef in a file that Saver or export_meta_graph wrote.

    Raises:
        BadInput: it is something else, or not whole.
    """
    meta = tf.MetaGraphDef()
    with open(path, "rb") as file:
        data = file.read()
    try:
        meta.ParseFromString(data)
    except DecodeError as error:
        raise BadInput(
            "{} is not a MetaGraph, or is truncated: give the .meta file of a checkpoint".format(
                path
            )
        ) from error
    if not meta.graph_def.node:
        raise BadInput("{} holds no graph: give the .meta file of a checkpoint".format(path))
    return meta
