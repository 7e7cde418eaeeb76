"""One process of an Estimator job for the tests: TF_CONFIG, then tf.estimator.train_and_evaluate.

The cluster's worker 0 is the Estimator's chief. The spec holds

    out         a directory: `model`, and from the chief `audit`
    max_steps   of the TrainSpec, or null: until the data ends
    batches     how many batches each worker has, a list by task, or null: without end
    late        True: it does not wait for the others to begin
"""

import json
import os
import sys

import semisync
from semisync.cluster.barrier import Barrier
from semisync.cluster.process import end_with_parent
from semisync.common.compat import tf
from tests.wrap.job import batch, build_loss

M = 2


def tf_config(spec):
    """TF_CONFIG of this process."""
    workers = spec["cluster"]["worker"]
    cluster = {"chief": workers[:1], "worker": workers[1:], "ps": spec["cluster"]["ps"]}
    task = {"type": spec["job"], "index": spec["task"]}
    if spec["job"] == "worker":
        chief = spec["task"] == 0
        task = {"type": "chief" if chief else "worker", "index": max(0, spec["task"] - 1)}
    return json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})


def model_fn(spec):
    parties = len(spec["cluster"]["worker"])

    def build(features, labels, mode, config):
        loss = build_loss("square", features, labels, resource=False)
        optimizer = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.1), M)
        train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
        together = Barrier("estimator", spec["task"], parties, timeout=300.0)
        hooks = ([] if spec.get("late") else [together]) + [
            optimizer.make_session_run_hook(
                config.is_chief, patience=300.0, audit=os.path.join(spec["out"], "audit")
            ),
        ]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=hooks)

    return build


def input_fn(spec):
    def read():
        count = spec["batches"] and spec["batches"][spec["task"]]
        return tf.data.Dataset.from_tensors(batch(spec["task"], 0)).repeat(count)

    return read


def main():
    spec = json.loads(sys.argv[1])
    end_with_parent(spec["parent"])
    os.environ["TF_CONFIG"] = tf_config(spec)
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tf.estimator.RunConfig(
        model_dir=os.path.join(spec["out"], "model"),
        save_summary_steps=5,
        experimental_max_worker_delay_secs=1,
    )
    tf.estimator.train_and_evaluate(
        tf.estimator.Estimator(model_fn(spec), config=config),
        tf.estimator.TrainSpec(input_fn(spec), max_steps=spec["max_steps"]),
        tf.estimator.EvalSpec(input_fn(spec), steps=1),
    )


if __name__ == "__main__":
    main()
