"""Global Batch Aggregation around any TensorFlow optimizer (GBA, NeurIPS 2022, arXiv 2205.11048).

The protocol, by role. M is the number of local batches in a global batch.

Every worker, in one run of its train op:
1. It holds a ticket, drawn at the end of the run before, and with it a token: the global step of
   that moment. The parameters are read after it, so the token never flatters the staleness.
2. It computes its gradients and stages them on each PS, under the ticket.
3. When every PS has its part it tells the chief: ticket and token. This makes the batch count. A
   worker that dies before leaves nothing that anybody waits for.
4. It draws the next ticket and reads the next token.

The chief, in a thread beside its own training:
5. It takes the messages that have come. Of every M batches it makes a global batch: the same M on
   every PS, whatever order their parts arrived in.
6. staleness = global step - token, exact, for each; the policy turns it into a weight.
7. Each PS takes the M payloads, forms the weighted mean and applies it once with the wrapped
   optimizer; then the global step grows by one.
8. It issues new tickets, so that no worker waits (or, paced, exactly M for the next step).

At the end each worker gives its ticket back; the chief goes on until all workers have left, applies
what is left as one smaller global batch (divided by its own number of batches), and saves.

A global batch whose batches are all stale is applied like any other, with a mean of zero: Adam's
moments decay, the step grows. What a PS holds is bounded: see `semisync.ledger`.
"""

import collections
import numbers
from typing import Any, Dict, List, Tuple

from semisync.compat import raw_ops, tf
from semisync.desk import Desk
from semisync.errors import UsageError
from semisync.gradients import nothing, pack, unpack, weighted_mean
from semisync.shelf import Shelf
from semisync.worker import Worker

ApplyStep = collections.namedtuple(
    "ApplyStep", "tickets tokens count step staleness weights pad op"
)


class GlobalBatchOptimizer(tf.train.Optimizer):
    """Wraps a tf.compat.v1 optimizer; `minimize` then trains semi-synchronously.

        opt = semisync.GlobalBatchOptimizer(tf.train.AdagradOptimizer(0.05), batches_per_step=32)
        train_op = opt.minimize(loss, global_step=step)
        hook = opt.make_session_run_hook(is_chief)   # into MonitoredTrainingSession, every worker

    The learning rate and every other hyperparameter stay those of the synchronous job whose global
    batch is batches_per_step x the local batch. Variables, slots and their names are the wrapped
    optimizer's own: checkpoints are the same with and without the wrapper.

    Args:
      optimizer: any tf.compat.v1.train.Optimizer.
      batches_per_step: M, global batch / local batch. Need not be the number of workers.
      staleness: the policy, see `semisync.staleness`. None counts every batch fully.
      paced: True hands out exactly M tickets a global step: synchronous, staleness zero.
      name: of the ops, and of the queues on the PS; the same in every process.
    """

    def __init__(
        self, optimizer, batches_per_step, staleness=None, paced=False, name="GlobalBatch"
    ):
        if not isinstance(optimizer, tf.train.Optimizer):
            raise UsageError(
                "GlobalBatchOptimizer wraps a tf.compat.v1.train.Optimizer, not {!r}".format(
                    type(optimizer).__name__
                )
            )
        if isinstance(optimizer, (tf.train.SyncReplicasOptimizer, GlobalBatchOptimizer)):
            raise UsageError(
                "{} aggregates already: wrap the optimizer inside it".format(
                    type(optimizer).__name__
                )
            )
        if not _is_count(batches_per_step):
            raise UsageError(
                "batches_per_step is the number of local batches in a global batch, a whole number "
                "of 1 or more, not {!r}".format(batches_per_step)
            )
        if staleness is not None and not callable(staleness):
            raise UsageError(
                "staleness is a policy such as semisync.Threshold(4) or a callable, not "
                "{!r}".format(staleness)
            )
        super(GlobalBatchOptimizer, self).__init__(use_locking=False, name=name)
        self._optimizer = optimizer
        self._policy = tf.ones_like if staleness is None else staleness
        self.batches_per_step = int(batches_per_step)
        self.paced = paced
        # Built by apply_gradients; the hook runs them.
        self.global_step: Any = None
        self.desk: Any = None
        self.worker: Any = None
        self.apply_step: Any = None
        self.clear_shelves: Any = None

    def compute_gradients(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Builds the worker's train op and the chief's step; returns the train op.

        Args:
          grads_and_vars: as compute_gradients returns it; pairs without a gradient are left out.
          global_step: required; counts global batches.

        Raises:
          UsageError: no gradient, no global step, or a second call.
        """
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        if not pairs:
            raise UsageError("no variable has a gradient: check the loss and the var_list")
        if global_step is None:
            raise UsageError(
                "GlobalBatchOptimizer counts global batches: pass "
                "global_step=tf.train.get_or_create_global_step() to minimize or apply_gradients"
            )
        if self.worker is not None:
            raise UsageError(
                "this GlobalBatchOptimizer already applies gradients: make one for each train op"
            )
        # What the chief runs, and the worker's first and last messages, must not wait for what the
        # caller has put before the train op, such as UPDATE_OPS, which need a batch.
        self.global_step = global_step
        with tf.control_dependencies(None):
            shared_name = _shared_name(self._name)
            with tf.name_scope(name, self._name) as scope:
                self.desk = Desk(shared_name, global_step)
                parts = _by_device(shared_name, pairs)
                step, means = self._combine(parts, global_step)
                self.clear_shelves = tf.group(*[part.shelf.clear() for part in parts])
                self.worker = Worker(self.desk, global_step, [g for g, _ in pairs])
            # Outside the name scope: the wrapped optimizer's variables keep their names.
            applied = self._optimizer.apply_gradients(means, global_step=global_step)
            self.apply_step = step._replace(op=applied)
        with tf.name_scope(scope):
            return self.worker.train_op(
                lambda ticket: [part.shelf.put(ticket, pack(part.gradients)) for part in parts]
            )

    def _combine(self, parts, global_step):
        """The chief's side: M tickets and tokens in, the mean gradients out.

        Returns: an ApplyStep without its op, and the list of (mean gradient, variable).
        """
        size = self.batches_per_step
        with tf.device(self.desk.device):
            tickets = tf.placeholder(tf.int64, [size], name="tickets")
            tokens = tf.placeholder(tf.int64, [size], name="tokens")
            count = tf.placeholder(tf.int32, [], name="count")
            # A copy: a reference variable's value is an alias, and would be fetched as it is later.
            step = tf.cast(raw_ops.DeepCopy(x=global_step), tf.int64)
            staleness = step - tokens
            live = tf.cast(tf.range(size) < count, tf.float32)
            weights = tf.cast(self._policy(tf.cast(staleness, tf.float32)), tf.float32) * live
            # Every mean divides by this, so the step is read before anything moves it on, even
            # where the policy does not look at the staleness.
            with tf.control_dependencies([staleness]):
                divisor = tf.cast(count, tf.float32)
        means: List[Tuple[Any, Any]] = []
        pads = []
        for part in parts:
            with tf.device(part.shelf.device):
                batches = [unpack(part.shelf.get(tickets[i]), part.gradients) for i in range(size)]
                mean = weighted_mean(batches, part.variables, weights, divisor)
                means += zip(mean, part.variables)
                pads.append(part.shelf.put(tickets[0], nothing(part.gradients, part.variables)))
        inputs = {"tickets": tickets, "tokens": tokens, "count": count}
        found = {"step": step, "staleness": staleness, "weights": weights}
        return ApplyStep(pad=tf.group(*pads), op=None, **inputs, **found), means

    def make_session_run_hook(self, is_chief, patience=120.0, audit=None):
        """The hook that every worker passes to its MonitoredTrainingSession.

        Args:
          is_chief: True in exactly one process, which applies the global batches.
          patience: seconds without a sign of life after which the chief gives up on the batches
            that are out, and says whose.
          audit: path of a JSON-lines file in which the chief writes each global step's batches.

        Raises:
          UsageError: before minimize or apply_gradients, or where `audit` cannot be written.
        """
        from semisync.hook import GlobalBatchHook

        if self.worker is None:
            raise UsageError("call minimize or apply_gradients before make_session_run_hook")
        if is_chief and audit is not None:
            _check_writable(audit)
        return GlobalBatchHook(self, is_chief, patience, audit)

    def get_slot(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self):
        """As the wrapped optimizer's."""
        return self._optimizer.variables()


_Part = collections.namedtuple("_Part", "shelf gradients variables")


def _is_count(number):
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    return whole and int(number) >= 1


def _check_writable(path):
    try:
        with open(path, "a"):
            return
    except OSError as error:
        raise UsageError(
            "the audit log {} cannot be written: {}".format(path, error.strerror)
        ) from error


def _shared_name(name):
    """The same in every process that builds the same optimizers in the same order."""
    earlier = tf.get_collection_ref("semisync_optimizers")
    earlier.append(name)
    count = earlier.count(name)
    return name if count == 1 else "{}_{}".format(name, count)


def _by_device(name, pairs):
    """Groups the variables by their PS, each group with its shelf, in the order of the pairs."""
    groups: Dict[str, List[Tuple[Any, Any]]] = {}
    for gradient, variable in pairs:
        groups.setdefault(variable.device, []).append((gradient, variable))
    parts = []
    for number, (device, group) in enumerate(groups.items()):
        gradients, variables = zip(*group)
        dtypes = [tensor.dtype.base_dtype for tensor in pack(gradients)]
        shelf = Shelf("{}/shelf_{}".format(name, number), device, dtypes)
        parts.append(_Part(shelf, gradients, variables))
    return parts
