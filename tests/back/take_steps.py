"""Takes training steps with TensorFlow from checkpoints; runs in TensorFlow 1.15 and 2.x.

    python take_steps.py JOBS.json

JOBS.json is a list of {folder, prefix, steps, out}: the graph of a zoo model, imported
from the MetaGraph beside `prefix`, is restored from `prefix` by its own Saver, takes the steps with
these numbers on what they were fed when they were recorded, and is saved as `out`.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf


def main(jobs):
    tf.disable_v2_behavior()
    for job in jobs:
        with open(os.path.join(job["folder"], "model.json")) as file:
            said = json.load(file)
        with np.load(os.path.join(job["folder"], "steps.npz"), allow_pickle=True) as file:
            recorded = dict(file)
        with tf.Graph().as_default(), one_thread() as session:
            saver = tf.train.import_meta_graph(job["prefix"] + ".meta")
            saver.restore(session, job["prefix"])
            session.run(tf.tables_initializer())
            for step in job["steps"]:
                session.run(said["train_op"], fed(said, recorded, step))
            saver.save(session, job["out"], write_meta_graph=False)


def one_thread():
    config = tf.ConfigProto(inter_op_parallelism_threads=1, intra_op_parallelism_threads=1)
    config.graph_options.rewrite_options.disable_meta_optimizer = True  # it takes the most time
    return tf.Session(config=config)


def fed(said, recorded, step):
    """{tensor: value} of a recorded step."""
    tensors = {flag["point"]: flag["tensor"] for flag in said["flags"]}
    tensors.update((name, name) for name in said["drawn"])
    for one in said["inputs"] + said["labels"]:
        if one["sparse"]:
            for part, tensor in one["tensors"].items():
                tensors["{}/{}".format(one["point"], part)] = tensor
        else:
            tensors[one["point"]] = one["tensor"]
    start = "{}/".format(step)
    return {
        tensors[key[len(start) :]]: value
        for key, value in recorded.items()
        if key.startswith(start)
    }


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        main(json.load(file))
