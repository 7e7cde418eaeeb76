"""One process of the experiment's cluster: a PS, or a worker that trains all runs in turn.

    python -m benchmarks.auc_evidence_parts.job SPEC

SPEC is a JSON object. Besides LocalCluster's entries it holds `data` (the folder of
`data.prepare`), `out`, `settings` (plan.Settings) and `runs`, a
list of {"name", "mode", "seed", "learning_rate"}. `training` describes the files of a run in
OUT/NAME; the chief then adds scores.npy, float32, of the rows to score.

Runs on Python 3.7 with TensorFlow 1.15 as well.
"""

import os

import numpy as np

from benchmarks.auc_evidence_parts import data, model, plan
from benchmarks.auc_evidence_parts.training import Inputs, Training
from semisync.cluster.process import join_cluster
from semisync.common.compat import tf


def main():
    """The process."""
    spec, server, place = join_cluster(tf.logging.ERROR)
    task = spec["task"]
    settings = plan.Settings(**spec["settings"])
    answers = data.load(spec["data"])
    train, held_out = (data.rows_of(answers, days) for days in plan.SPLITS["test"])
    for run in spec["runs"]:
        out = os.path.join(spec["out"], run["name"])
        # One container per run keeps the runs' variables and queues apart on the PS.
        with tf.Graph().as_default() as graph, graph.container(run["name"]), tf.device(place):
            Training(run, settings, answers, train, task, out).run(server)
        if task == 0:
            scores = score(os.path.join(out, "model"), answers, held_out)
            np.save(os.path.join(out, "scores.npy"), scores)


def score(checkpoint, answers, rows):
    """The checkpoint's probabilities for `rows`, float32."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = Inputs(answers)
        logit = model.logits(inputs.fields, inputs.bags, answers.about, seed=0)
        tf.train.Saver(tf.trainable_variables()).restore(session, checkpoint)
        return model.score(session, logit, inputs.fields, inputs.bags, answers, rows)


if __name__ == "__main__":
    main()
