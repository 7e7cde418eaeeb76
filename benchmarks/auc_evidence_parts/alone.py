"""The global batch in one process, without cluster or semisync: the reference for every mode.

    python -m benchmarks.auc_evidence_parts.alone SPEC

The optimizer gets each global batch whole, as the union of its local batches, in the order of
`plan.batches`. With `delay` d, every global batch's gradients are computed from the parameters of d
steps before: exactly d global steps stale, which shows what staleness alone costs.

SPEC is a JSON object: `data`, `settings` (as for `job`) and `runs`, a list of {"seed",
"learning_rate", "delay", "scores"}; "scores" is the path of the .npy file to write.
"""

import collections
import json
import sys

import numpy as np

from benchmarks.auc_evidence_parts import data, model, plan
from benchmarks.auc_evidence_parts.training import Inputs
from semisync.common.compat import tf
from semisync.demo.tensorflow.training import gradient_parts


class Alone:
    """Trains in this process.

    Args:
        run: {"seed", "learning_rate", "delay"}.
        settings: plan.Settings.
        answers: data.Answers.
        rows, held_out: the slices to train on and to score.
    """

    def __init__(self, run, settings, answers, rows, held_out):
        self._answers, self._held_out, self._delay = answers, held_out, run["delay"]
        batches = plan.batches(rows, settings, run["seed"])
        whole = settings.local_batch * settings.batches_per_step
        self._batches = batches.reshape(-1, whole)
        self._inputs = inputs = Inputs(answers)
        seed = plan.model_seed(run["seed"])
        self._logit = model.logits(inputs.fields, inputs.bags, answers.about, seed)
        step = tf.train.get_or_create_global_step()
        steps = len(self._batches)
        optimizer = plan.optimizer(
            settings.optimizer, run["learning_rate"], step, steps, settings.beta1
        )
        pairs = optimizer.compute_gradients(model.loss(self._logit, inputs.labels))
        self._computed = [gradient_parts(gradient) for gradient, _ in pairs]
        self._late = [[tf.placeholder(p.dtype, p.shape) for p in parts] for parts in self._computed]
        late = [
            parts[0] if len(parts) == 1 else tf.IndexedSlices(*parts, dense_shape=variable.shape)
            for parts, (_, variable) in zip(self._late, pairs)
        ]
        self._apply = optimizer.apply_gradients(zip(late, [v for _, v in pairs]), step)

    def scores(self, session):
        """Trains; returns the scores of the held-out rows, float32."""
        session.run(tf.global_variables_initializer())
        waiting = collections.deque()
        for number, rows in enumerate(self._batches, 1):
            waiting.append(session.run(self._computed, self._inputs.feed(rows)))
            last = number == len(self._batches)
            while len(waiting) > (0 if last else self._delay):
                self._apply_one(session, waiting.popleft())
        fed = self._inputs.fields, self._inputs.bags, self._answers, self._held_out
        return model.score(session, self._logit, *fed)

    def _apply_one(self, session, gradients):
        feed = {}
        for parts, values in zip(self._late, gradients):
            feed.update(zip(parts, values))
        session.run(self._apply, feed)


def train(run, settings, answers):
    """The scores of the held-out rows, float32 [rows]."""
    rows, held_out = (data.rows_of(answers, days) for days in plan.SPLITS["test"])
    with tf.Graph().as_default(), tf.Session() as session:
        return Alone(run, settings, answers, rows, held_out).scores(session)


def main():
    spec = json.loads(sys.argv[1])
    tf.disable_v2_behavior()
    settings = plan.Settings(**spec["settings"])
    answers = data.load(spec["data"])
    for run in spec["runs"]:
        np.save(run["scores"], train(run, settings, answers))


if __name__ == "__main__":
    main()
