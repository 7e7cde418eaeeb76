"""The MetaGraphs of jobs of `write_steps` whose optimizer semisync wraps.

    python write_wrapped.py FOLDER DIGEST NAME...

FOLDER/NAME.meta of each job is as a session with the hook saves it, with two parameter servers;
FOLDER/rewritten_NAME.meta as `semisync rewrite` makes it of the plain job's.
Runs in TensorFlow 1.15 and 2.x. DIGEST is of semisync's sources.
"""

import os
import pathlib
import sys

import write_steps

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
import graph_rewrite
import semisync
from semisync.common.compat import tf

SERVERS = tf.train.replica_device_setter(2, worker_device="/job:worker/task:0")
REWRITTEN = "rewritten_"


def write(path, job):
    optimizer, clip, resource = job
    wrapped = []

    def wrap(plain):
        wrapped.append(semisync.GlobalBatchOptimizer(plain, 4, staleness=semisync.Threshold(2)))
        return wrapped[0]

    with tf.Graph().as_default(), tf.device(SERVERS):
        write_steps.build(optimizer, clip, resource, wrap)
        wrapped[0].make_session_run_hook(True).begin()
        tf.train.Saver().export_meta_graph(path)


def rewrite(path, job):
    optimizer, clip, resource = job
    with tf.Graph().as_default(), tf.device(SERVERS):
        write_steps.build(optimizer, clip, resource)
        plain = tf.train.Saver().export_meta_graph()
    meta, _ = graph_rewrite.semi_synchronize(plain, 4, semisync.Threshold(2))
    with open(path, "wb") as file:
        file.write(meta.SerializeToString())


if __name__ == "__main__":
    tf.disable_eager_execution()
    for name in sys.argv[3:]:
        make = rewrite if name.startswith(REWRITTEN) else write
        job = write_steps.jobs()[name.replace(REWRITTEN, "")]
        make(os.path.join(sys.argv[1], name + ".meta"), job)
