"""One run (one mode, one seed) in one worker: the graph, the session, the loop.

For each batch a worker

1. computes the gradients;
2. pauses, for as long as `plan.pauses` makes this batch take;
3. sends the gradients to the parameter servers.

Since the pause comes after the gradients are computed, the gradients of a slow batch are old when
they arrive, in every mode. With pause_in="reading" it comes before, as where the input is slow.

The chief writes OUT/model, a checkpoint; each worker writes OUT/worker-K.json:

    trained     the number of its batches
    seconds     from the common start to its end; the chief's ends when all have ended
    staleness   {staleness: batches}. Asynchronous: of its own batches, counted in updates by others
                between reading the variables and applying the gradients. Otherwise from the chief
                alone: of all batches, in global steps, from the optimizer's ledger
"""

import collections
import concurrent.futures
import os
import time

import semisync
from benchmarks.auc_evidence_parts import model, plan
from semisync.cluster.barrier import Barrier
from semisync.common.compat import tf
from semisync.common.files import write_json
from semisync.demo.tensorflow.modes import LEDGER
from semisync.demo.tensorflow.training import delayed, gradient_parts, plain_session, step_now
from semisync.demo.tensorflow.work import Ending, WorkList

HANG = 2000  # ms; SyncReplicasOptimizer leaves a worker waiting when others end (tensorflow#20342)


class Inputs:
    """The placeholders of one batch, and their feed dict."""

    def __init__(self, answers):
        self._answers = answers
        self.fields = tf.placeholder(tf.int16, [None, answers.fields.shape[1]])
        self.bags = tf.placeholder(tf.int16, [None, answers.bags.shape[1]])
        self.labels = tf.placeholder(tf.int8, [None])

    def feed(self, rows):
        """The feed dict for an array of row numbers."""
        answers = self._answers
        return {
            self.fields: answers.fields[rows],
            self.bags: answers.bags[rows],
            self.labels: answers.labels[rows],
        }


class Training:
    """Builds a run's graph in the default graph; `run` trains it.

    Args:
        run: {"mode", "seed", "learning_rate"}; mode "sync", "semi-sync", "native-sync" or "async".
            It may have "beta1", "backups", batches more than a global batch has, and
            "mean_staleness", in global steps.
        settings: plan.Settings.
        answers: data.Answers.
        rows: the slice to train on.
        task: of this worker.
        out: the run's folder.
    """

    def __init__(self, run, settings, answers, rows, task, out):
        self._task, self._chief, self._out = task, task == 0, out
        self._mode, self._ahead = run["mode"], settings.prefetch
        self._batches = plan.batches(rows, settings, run["seed"])
        self._pauses = plan.pauses(len(self._batches), settings, run["seed"])
        if task == settings.workers - 1:
            self._pauses *= settings.slow_worker
        self._step = tf.train.get_or_create_global_step()
        self._inputs = Inputs(answers)
        self._pause, self._reads = tf.placeholder(tf.float32, []), settings.pause_in == "reading"
        self._build(run, settings, answers)
        # Order of the hooks: fill the list, wait for all workers; wait for their end, save.
        self._work = WorkList(len(self._batches), self._chief)
        barrier = Barrier("start", task, settings.workers)
        ending = Ending(
            os.path.join(out, "model"), task, settings.workers, tf.trainable_variables()
        )
        self._aggregation = (
            [] if self._mode == "async" else [self._optimizer.make_session_run_hook(self._chief)]
        )
        self._limit = tf.RunOptions(timeout_in_ms=HANG) if self._mode == "native-sync" else None
        self._hooks = [self._work, barrier] + self._aggregation + [ending]

    def _build(self, run, settings, answers):
        inputs = self._inputs
        seed = plan.model_seed(run["seed"])
        logit = model.logits(inputs.fields, inputs.bags, answers.about, seed)
        per_step = 1 if self._mode == "async" else settings.batches_per_step
        tokens = per_step + run.get("backups", 0)  # of SyncReplicasOptimizer
        steps = len(self._batches) // tokens
        beta1, rate = run.get("beta1", settings.beta1), run["learning_rate"]
        self._optimizer = plan.optimizer(settings.optimizer, rate, self._step, steps, beta1)
        if self._mode == "native-sync":
            self._optimizer = tf.train.SyncReplicasOptimizer(self._optimizer, per_step, tokens)
        elif self._mode in LEDGER:
            more = {"paced": self._mode == "sync"}
            if run.get("mean_staleness"):
                more["in_flight"] = semisync.MeanStaleness(run["mean_staleness"])
            self._optimizer = semisync.GlobalBatchOptimizer(
                self._optimizer,
                batches_per_step=settings.batches_per_step,
                staleness=semisync.Threshold(settings.bound),
                **more,
            )
        pairs = self._optimizer.compute_gradients(model.loss(logit, inputs.labels))
        self._read_at = step_now(self._step)
        pairs = delayed(pairs, self._pause, [self._read_at], _paused)
        with tf.control_dependencies([part for pair in pairs for part in gradient_parts(pair[0])]):
            # Read once the gradients are there: steps by others since `_read_at` are the batch's
            # staleness.
            self._applied_at = step_now(self._step)
        self._train = self._optimizer.apply_gradients(pairs, global_step=self._step)

    def run(self, server):
        """Trains until the work list is empty, then writes the measurements."""
        staleness = collections.Counter()
        with plain_session(server, self._task, self._hooks) as session:
            start = time.monotonic()
            trained = self._loop(session, staleness)
        seconds = time.monotonic() - start
        if self._mode in LEDGER:
            staleness = self._aggregation[0].ledger.staleness if self._chief else {}
        result = {"trained": trained, "seconds": seconds, "staleness": staleness}
        write_json(os.path.join(self._out, "worker-%d.json" % self._task), result)

    def _loop(self, session, staleness):
        trained, fetches = 0, [self._train, self._read_at, self._applied_at]
        for number in self._numbers(session):
            feed = self._inputs.feed(self._batches[number])
            feed[self._pause] = 0 if self._reads else self._pauses[number]
            try:
                fetched = session.run(fetches, feed, options=self._limit)
            except tf.errors.DeadlineExceededError:
                continue
            staleness[int(fetched[2] - fetched[1])] += 1
            trained += 1
        return trained

    def _numbers(self, session):
        """Yields the numbers of this worker's batches once they are read, some ahead."""

        def read():
            # Without the hooks, which are the training's.
            number = int(session.run_step_fn(self._next_number))
            if self._reads:
                time.sleep(self._pauses[number])
            return number

        waiting = collections.deque()
        with concurrent.futures.ThreadPoolExecutor(1) as reader:
            while True:
                while len(waiting) <= self._ahead:
                    waiting.append(reader.submit(read))
                try:
                    number = waiting.popleft().result()
                except tf.errors.OutOfRangeError:
                    return
                yield number

    def _next_number(self, step_context):
        return step_context.session.run(self._work.next)


def _paused(seconds):
    """float32 `seconds`, when they have passed."""
    time.sleep(float(seconds))
    return seconds
