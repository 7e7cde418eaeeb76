"""The MetaGraphs of the jobs of `write_jobs` with the optimizer that semisync wraps.

    python write_wrapped.py FOLDER DIGEST NAME...

FOLDER/NAME.meta as a session with the hook saves it. DIGEST is of semisync's sources.
"""

import os
import pathlib
import sys

import write_jobs

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3]))
import semisync
from semisync.common.compat import tf


def write(path, optimizer, **more):
    wrapped = []

    def wrap(inner):
        wrapped.append(semisync.GlobalBatchOptimizer(inner, 4, staleness=semisync.Threshold(2)))
        return wrapped[0]

    with tf.Graph().as_default():
        write_jobs.build(optimizer(), wrap=wrap, **more)
        wrapped[0].make_session_run_hook(True).begin()
        tf.train.Saver().export_meta_graph(path)


if __name__ == "__main__":
    for name in sys.argv[3:]:
        optimizer, more = write_jobs.jobs()[name]
        write(os.path.join(sys.argv[1], name + ".meta"), optimizer, **more)
