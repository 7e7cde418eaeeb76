"""One process of the benchmark's cluster: a PS, or a worker that trains the modes one by one.

The spec (see `LocalCluster`) holds `case`, a case's name; `modes`, in the order of training; and
`out`, the folder of the signals. Mode number i has its own parameter servers, tasks i x ps to
(i + 1) x ps - 1, which are fresh when it begins.

Threads: TensorFlow's defaults on the PS, one intra-op thread on the workers.
"""

import json
import os
import sys

from semisync.cluster.process import end_with_parent
from semisync.common.compat import tf

from . import signals
from .cases import CASES
from .model import placed
from .training import Training

PATIENCE = 1800.0  # seconds for the others to reach the next mode; the orchestrator waits less


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.WARN)
    cluster, job, task = tf.train.ClusterSpec(spec["cluster"]), spec["job"], spec["task"]
    config = tf.ConfigProto(intra_op_parallelism_threads=1) if job == "worker" else None
    server = tf.train.Server(cluster, job_name=job, task_index=task, config=config)
    signals.give(spec["out"], "up-{}-{}".format(job, task))
    if job == "ps":
        server.join()
    case = CASES[spec["case"]]
    for number, mode in enumerate(spec["modes"]):
        folder = os.path.join(spec["out"], mode)
        signals.give(folder, "ready-{}".format(task))
        signals.wait_for(folder, "begin", PATIENCE)
        place = placed(cluster, task, number * case.ps, case.ps)
        with tf.Graph().as_default(), tf.device(place):
            result = Training(mode, case, task).run(server, folder)
        signals.give(folder, "result-{}.json".format(task), result)


if __name__ == "__main__":
    main()
