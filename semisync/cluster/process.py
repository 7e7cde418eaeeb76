"""A process that `LocalCluster` started: it ends with its parent, and serves the cluster."""

import os
import sys
import threading
import time

from semisync.common import json_text
from semisync.common.compat import tf

_POLL_SECONDS = 1.0


def join_cluster(verbosity):
    """Joins the cluster that the only argument describes; a parameter server never returns.

    Args:
        verbosity: of TensorFlow's log, such as tf.logging.ERROR.

    Returns:
        (the argument, a dict, see `semisync.cluster.local`; the tf.train.Server; a device function
        that puts variables on the parameter servers).
    """
    spec = json_text.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(verbosity)
    cluster, task = tf.train.ClusterSpec(spec["cluster"]), spec["task"]
    # With 4 threads between ops some runs stalled, up to half a minute; with 16 none did.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=16)
    server = tf.train.Server(cluster, job_name=spec["job"], task_index=task, config=config)
    if spec["job"] == "ps":
        server.join()
    place = tf.train.replica_device_setter(
        cluster=cluster, worker_device="/job:worker/task:%d" % task
    )
    return spec, server, place


def end_with_parent(parent):
    """Ends this process when the parent ends; a thread polls for that.

    Args:
        parent: the process id that the parent passed on. os.getppid() will not do: by now another
            process may have adopted this one.
    """

    def watch():
        while os.getppid() == parent:
            time.sleep(_POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="semisync-orphan", daemon=True).start()
