"""One process of the demo's cluster: a PS, or a worker that trains all modes in turn.

    python -m semisync.demo.tensorflow.process SPEC

SPEC is a JSON object. Besides LocalCluster's entries it holds `data` (a folder with the saved click
logs `train` and `test`), `out`, `modes`, `partitions`, `batch`, `batches` (in total),
`batches_per_step`, `bound`, `learning_rate`, `pause` (seconds per batch besides computing),
`slow_share`, `slow_factor`.

`semisync.demo.tensorflow.training` describes the files of a mode in OUT/MODE; the chief then adds
scores.npy (float32, of the held-out rows), and puts the graph of a job without a cluster in place
of the checkpoint's, which is that of one worker.
"""

import json
import os
import sys

import numpy as np

from semisync.cluster.orphan import end_with_parent
from semisync.common.compat import tf
from semisync.demo.data import click_log
from semisync.demo.tensorflow import deepfm
from semisync.demo.tensorflow.training import Training, adam


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.WARN)
    cluster, task = tf.train.ClusterSpec(spec["cluster"]), spec["task"]
    # With 4 threads between ops, the pauses of slow batches would hold up others.
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=16)
    server = tf.train.Server(cluster, job_name=spec["job"], task_index=task, config=config)
    if spec["job"] == "ps":
        server.join()
    place = tf.train.replica_device_setter(
        cluster=cluster, worker_device="/job:worker/task:%d" % task
    )
    train_log = click_log.load(os.path.join(spec["data"], "train"))
    for mode in spec["modes"]:
        out = os.path.join(spec["out"], mode)
        # One container per mode keeps the modes' variables and queues apart on the PS.
        with tf.Graph().as_default() as graph, graph.container(mode), tf.device(place):
            Training(mode, spec, train_log, out).run(server)
        if task == 0:
            test_log = click_log.load(os.path.join(spec["data"], "test"))
            with tf.Graph().as_default(), tf.Session() as session:
                checkpoint = tf.train.latest_checkpoint(out)
                scores = deepfm.score(session, test_log, spec["partitions"], checkpoint)
            np.save(os.path.join(out, "scores.npy"), scores)
            deepfm.export(test_log, spec["partitions"], lambda: adam(spec), checkpoint + ".meta")


if __name__ == "__main__":
    main()
