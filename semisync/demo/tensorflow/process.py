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

import os

import numpy as np

from semisync.cluster.process import join_cluster
from semisync.common.compat import tf
from semisync.demo.data import click_log
from semisync.demo.tensorflow import deepfm
from semisync.demo.tensorflow.training import Training, adam


def main():
    spec, server, place = join_cluster(tf.logging.WARN)
    train_log = click_log.load(os.path.join(spec["data"], "train"))
    for mode in spec["modes"]:
        out = os.path.join(spec["out"], mode)
        # One container per mode keeps the modes' variables and queues apart on the PS.
        with tf.Graph().as_default() as graph, graph.container(mode), tf.device(place):
            Training(mode, spec, train_log, out).run(server)
        if spec["task"] == 0:
            test_log = click_log.load(os.path.join(spec["data"], "test"))
            with tf.Graph().as_default(), tf.Session() as session:
                checkpoint = tf.train.latest_checkpoint(out)
                scores = deepfm.score(session, test_log, spec["partitions"], checkpoint)
            np.save(os.path.join(out, "scores.npy"), scores)
            deepfm.export(test_log, spec["partitions"], lambda: adam(spec), checkpoint + ".meta")


if __name__ == "__main__":
    main()
