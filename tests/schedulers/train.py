"""A job of `fault_job` that finds its place in TF_CONFIG: `python train.py OUT`.

An evaluator reads each new checkpoint until it is ended, and keeps its step in OUT/EVALUATED.
"""

import json
import os
import sys
import time

from semisync.common.compat import tf
from tests.wrap import fault_job
from tests.wrap.job import begin

EVALUATED = "evaluated"
PATIENCE = 150.0  # longer than any pod takes to come back: a worker that gives up fails the job


def evaluate(out):
    seen = None
    while True:
        newest = tf.train.latest_checkpoint(os.path.join(out, fault_job.CHECKPOINTS))
        if newest != seen:
            step = tf.train.load_checkpoint(newest).get_tensor("global_step")
            with open(os.path.join(out, EVALUATED), "a") as file:
                file.write("{}\n".format(step))
            seen = newest
        time.sleep(0.1)


def main():
    told, out = json.loads(os.environ["TF_CONFIG"]), sys.argv[1]
    role, task = told["task"]["type"], told["task"]["index"]
    tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.INFO)
    if role == "evaluator":
        evaluate(out)
    fault_job.look_again_after(fault_job.SPEC["recovery_wait"])
    spec = dict(fault_job.SPEC, job=role, task=task, cluster=told["cluster"], out=out)
    server = begin(spec)
    fault_job.train(dict(spec, chief=role == "chief", patience=PATIENCE), server)


if __name__ == "__main__":
    main()
