"""Global Batch Aggregation around any TensorFlow optimizer (GBA, NeurIPS 2022, arXiv 2205.11048).

The protocol, by role. M is the number of local batches in a global batch.

Every worker, in one run of its train op:
1. It holds a ticket, drawn at the end of the run before, and with it a token: the clock, which
   counts global batches, at that moment. The parameters are read after it, so the token never
   flatters the staleness.
2. It computes its gradients. If the batch is too stale by now it sends nothing, and tells the chief
   so. Else it stages them on each PS, under the ticket.
3. When every PS has its part it tells the chief: ticket and token. This makes the batch count. A
   worker that dies before leaves nothing that anybody waits for.
4. It draws the next ticket, says that it holds it, and reads the next token.

The chief, in a thread beside its own training:
5. It takes the messages that have come. Of every M batches it makes a global batch: the same M on
   every PS, whatever order their parts arrived in.
6. staleness = clock - token, exact, for each; the policy turns it into a weight. Batches of another
   weight than 1 are weighed, those of weight 0 replaced by nothing (or, dropped, by other batches).
7. Each PS takes the M payloads, combines them and applies the result once with the wrapped
   optimizer; then the global step and the clock grow by one.
8. It issues new tickets, so that no worker waits (or, paced, exactly M for the next step).

At the end each worker gives its ticket back; the chief goes on until all workers have left, applies
what is left as one smaller global batch (divided by its own number of batches), and saves.

A global batch whose batches are all stale is applied like any other, with a mean of zero: Adam's
moments decay, the step grows. What a PS holds is bounded: see `semisync.chief.ledger`.

Variables whose policy is "async" stand beside all this: each worker applies its gradient to them at
once, as the wrapped optimizer alone would, before it tells the chief.
"""

from typing import Any, List

from graph_rewrite.batch_norm.find import find_batch_norms
from graph_rewrite.edit.detach import disconnect
from semisync import arguments
from semisync.aggregate import batch_norm as moving_statistics
from semisync.aggregate import updates as shared
from semisync.chief.aggregation import Assembly
from semisync.chief.step import build_step
from semisync.common.compat import raw_ops, tf
from semisync.common.errors import UsageError
from semisync.common.per_graph import PerGraph
from semisync.handles import Handles
from semisync.settings import probe
from semisync.staleness import may_reject
from semisync.transport.devices import on_cpu
from semisync.transport.job_state import Board
from semisync.transport.mailbox import Desk
from semisync.transport.payload import Record, items_by_device
from semisync.transport.staging import Shelf
from semisync.worker.hook import GlobalBatchHook
from semisync.worker.operations import Worker
from semisync.worker.watchdog import pings
from semisync.wrapped import global_step as counting
from semisync.wrapped import siblings
from semisync.wrapped.carried import Carried
from semisync.wrapped.old_jobs import RECIPES, OldJob
from semisync.wrapped.optimizer import Wrapped


class _InGraph:
    """What an optimizer has in one graph."""

    def __init__(self):
        self.records: List[Record] = []
        self.replaced: List[str] = []  # ops whose work the chief does
        self.uncounted: Any = None  # the global step that the job counts by itself, or None
        self.handles: Any = None


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
      on_stale: what becomes of the slot of a batch of weight 0: "keep" leaves it empty (GBA),
        "drop" gives it to another batch.
      sparse_mean: "batches" divides an id's summed gradient by M, as the global batch does;
        "touches" by the number of batches that met the id (GBA); "sum" by nothing.
      policy: list of (regex, "semi-sync" | "async"): the first whose regex is found in a variable's
        name says how it is trained. Or a function (gradient, variable) -> one of the two. Without
        one: "semi-sync".
      batch_norm: "aggregate" has BatchNorm's moving statistics share the fate of their batch and
        decay as with M local updates a global step; "aggregate-once" decays them as one step with
        the global batch would; "async" leaves their updates alone.
        See `semisync.aggregate.batch_norm`.
      shared_updates: list of (regex, "sum" | "mean" | "last"): the updates of the variables that
        are not trained and whose names a regex finds, such as counters, share the fate of their
        batch. See `semisync.aggregate.updates`.
      paced: True hands out exactly M tickets a global step: synchronous, staleness zero.
      in_flight: how many tickets may be out at once, that is batches between reading their
        parameters and lying on the PS; a worker beyond it waits. None: one a worker.
      name: of the ops, and of the queues on the PS; the same in every process.

    Attributes, after minimize or apply_gradients:
      fate: int64 tensor [2]: what became of this worker's last batch (`semisync.Fate`) and its
        staleness; (PENDING, -1) until it is decided. Fetched together with the train op it tells of
        the batch before.
      aggregated_gradients: the global batch's gradients as a list of (gradient, variable); the
        chief's hook can fetch what is computed from them, see `GlobalBatchHook.observe`.

    Raises:
      UsageError: an argument is not what it should be.
    """

    def __init__(
        self,
        optimizer,
        batches_per_step,
        staleness=None,
        on_stale="keep",
        sparse_mean="batches",
        policy=None,
        batch_norm="aggregate",
        shared_updates=None,
        paced=False,
        in_flight=None,
        name="GlobalBatch",
    ):
        aggregates = (tf.train.SyncReplicasOptimizer, GlobalBatchOptimizer)
        self._wrapped = Wrapped(arguments.plain_optimizer(optimizer, aggregates))
        self.batches_per_step = arguments.count(
            "batches_per_step", "the number of local batches in a global batch", batches_per_step
        )
        self.paced, self.in_flight = arguments.pace(paced, in_flight)
        self._staleness = arguments.staleness_policy(staleness)
        self.on_stale = arguments.choice("on_stale", on_stale, ("keep", "drop"))
        self._sparse_mean = arguments.choice(
            "sparse_mean", sparse_mean, ("batches", "touches", "sum")
        )
        self._mode_of = arguments.variable_policy(policy)
        self._batch_norm = arguments.choice(
            "batch_norm", batch_norm, ("aggregate", "aggregate-once", "async")
        )
        self._shared_updates = arguments.rules("shared_updates", shared_updates or [], shared.HOW)
        super(GlobalBatchOptimizer, self).__init__(use_locking=False, name=name)
        self._in_graph = PerGraph(_InGraph)
        self._last: Any = None  # the newest handles

    @property
    def handles(self):
        """What was built in the default graph, else what was built last: `Handles`, or None."""
        return self._in_graph.of().handles or self._last

    @property
    def fate(self):
        return self.handles and self.handles.fate

    @property
    def aggregated_gradients(self):
        return self.handles and self.handles.aggregated_gradients

    def __getattr__(self, name):
        if name in RECIPES:
            raise OldJob(RECIPES[name])
        raise AttributeError("GlobalBatchOptimizer has no attribute {!r}".format(name))

    def compute_gradients(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        arguments.graph_mode()
        return self._wrapped.optimizer.compute_gradients(*args, **kwargs)

    def carry(self, tensors, device, update):
        """Has more than gradients share the fate of each batch; call it before apply_gradients.

        Args:
          tensors: this batch's, a list of tensors of static shapes.
          device: of the PS that keeps them.
          update: (weights float32 [k], list of tensors [k, ...]) -> op, built once: what a global
            step does with those of its k batches whose weight is not 0.
        """
        self._in_graph.of().records.append(Record(tensors, device, update))

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        """Builds the worker's train op and the chief's step; returns the train op.

        Args:
          grads_and_vars: as compute_gradients returns it; pairs without a gradient are left out.
          global_step: counts global batches. None: the one that another GlobalBatchOptimizer of the
            graph counts already, else the graph's own, which the job then counts no longer.

        Raises:
          UsageError: no gradient, no global step, a second call in one graph, or no place to build
            a train op in.
        """
        arguments.graph_mode()
        pairs = [(g, v) for g, v in grads_and_vars if g is not None]
        here = self._in_graph.of()
        self._check(pairs, here)
        modes = [self._mode_of(*pair) for pair in pairs]
        together = [pair for pair, mode in zip(pairs, modes) if mode == "semi-sync"]
        at_once = [pair for pair, mode in zip(pairs, modes) if mode == "async"]
        arguments.warn_of_idle_rules(self._mode_of, pairs)
        counts = _step_to_count(global_step)
        counted = siblings.counted_step() if counts is None else counts
        device = on_cpu(counted.device)
        self._share_what_the_batch_updates(here)
        # What the chief runs, and the worker's first and last messages, must not wait for what the
        # caller has put before the train op, such as UPDATE_OPS, which need a batch.
        with tf.control_dependencies(None):
            limited = self.paced or self.in_flight is not None
            shared_name, number, in_turn = siblings.join(self._name, counts, limited)
            with tf.name_scope(name, self._name) as scope:
                desk, board = Desk(shared_name, device), Board(shared_name, device)
                shelves = self._make_shelves(shared_name, together, here.records)
                with tf.device(device):
                    assembly = Assembly(self.batches_per_step)
                    combined = assembly.take(shelves)
            aggregated = _gradients_of(combined)
            # Outside the name scope: the wrapped optimizer's variables keep their names.
            applied, brought = self._apply(combined, aggregated, at_once, global_step, here.records)
            if counts is not global_step:
                with tf.control_dependencies([applied]):
                    applied = counting.count(counts)
                here.uncounted = counting.Uncounted(counts, applied)
            with tf.name_scope(scope):
                with tf.device(device):
                    carried = Carried(brought, shared_name, device, assembly)
                    shelves += carried.shelves
                    assembly.finish()
                    clear = tf.group(carried.begin, *[shelf.clear() for shelf in shelves])
                    # A copy: a reference variable's value is an alias, and would be fetched as it
                    # is later.
                    first_clock = tf.cast(raw_ops.DeepCopy(x=counted), tf.int64)
                payload = [t for shelf in shelves for each in shelf.items for t in each.tensors]
                ready = payload + [getattr(gradient, "values", gradient) for gradient, _ in at_once]
                # The last variables are mostly the last layers', whose gradients come first.
                early = pairs[-1][0]
                worker = Worker(desk, board, ready, getattr(early, "values", early))
                board.summaries()
                with tf.device(device):
                    done = tf.group(applied, carried.keep)
                    step = build_step(done, board, self._staleness, worker.device)
                with tf.device(worker.device):
                    policy_probe = probe(self._staleness)
                here.handles = self._last = Handles(
                    batches_per_step=self.batches_per_step,
                    on_stale=self.on_stale,
                    paced=self.paced,
                    in_flight=self.in_flight,
                    hyperparameters=self._wrapped.own_numbers(),
                    manifest=self._describe(pairs, modes, here.replaced),
                    # Paced, a worker leaves the tickets that it has no batch for to the others.
                    draws_between_runs=self.paced or in_turn,
                    number=number,
                    global_step=counts,
                    desk=desk,
                    board=board,
                    worker=worker,
                    assembly=assembly,
                    step=step,
                    clear_shelves=clear,
                    first_clock=first_clock,
                    policy_probe=policy_probe,
                    pings=pings([counted.device] + [variable.device for _, variable in pairs]),
                    aggregated_gradients=aggregated,
                    unfed=sorted(brought.unfed),
                )

        def send(ticket, gate):
            staged = [
                shelf.put(ticket, [[gate(t) for t in each.tensors] for each in shelf.items])
                for shelf in shelves
            ]
            with tf.control_dependencies([ticket]):
                return staged + self._wrapped.apply_batch([(_pass(gate, g), v) for g, v in at_once])

        with tf.name_scope(scope):
            policy = self._staleness if may_reject(self._staleness) else None
            return worker.train_op(policy, send, draw=not here.handles.draws_between_runs)

    def _check(self, pairs, here):
        if not pairs:
            raise UsageError("no variable has a gradient: check the loss and the var_list")
        for gradient, _ in pairs:
            arguments.own_gradient(gradient)
        if tf.get_default_graph().finalized:
            raise UsageError(
                "the graph is finalized: call minimize or apply_gradients before the session is "
                "made"
            )
        if here.handles is not None:
            raise UsageError(
                "this GlobalBatchOptimizer already applies gradients in this graph: make one for "
                "each train op"
            )

    def _share_what_the_batch_updates(self, here):
        """Carries BatchNorm's statistics and the shared updates; the chief applies them."""
        with tf.control_dependencies(None):
            if self._batch_norm != "async":
                once = self._batch_norm == "aggregate-once"
                here.replaced += moving_statistics.share(self._batch_norms(), self.carry, once)
            here.replaced += shared.share(self._found_updates(here.replaced), self.carry)

    def _batch_norms(self):
        return find_batch_norms(tf.get_default_graph())

    def _found_updates(self, replaced):
        return shared.find(tf.get_default_graph(), self._shared_updates, replaced)

    def _make_shelves(self, name, pairs, records):
        """One shelf for each PS that gets a part of the payload."""
        items = items_by_device(pairs, records, self.batches_per_step, self._sparse_mean)
        return [
            Shelf("{}/shelf_{}".format(name, number), device, on_device)
            for number, (device, on_device) in enumerate(items.items())
        ]

    def _describe(self, pairs, modes, replaced):
        """What every process must have alike of the payload, a list of strings."""
        return (
            ["{} {} {}".format(m, v.op.name, type(g).__name__) for m, (g, v) in zip(modes, pairs)]
            + [self._sparse_mean, self._batch_norm]
            + replaced
        )

    def _apply(self, combined, aggregated, at_once, global_step, records):
        """The op that applies the combined payloads, and the `Hyperparameters` of it."""
        if at_once:
            self._wrapped.make_slots([v for _, v in aggregated + at_once])
        updates = [record.update(*combined[record]) for record in records]
        applied, found = self._wrapped.apply_global_batch(aggregated, global_step, updates)
        return tf.group(applied, *updates), found

    def make_session_run_hook(self, is_chief, num_tokens=None, patience=120.0, audit=None):
        """The hook that every worker passes to its MonitoredTrainingSession.

        It may be made before minimize, and serve one session after another, also of other graphs.

        Args:
          is_chief: True in exactly one process, which applies the global batches.
          num_tokens: taken, and not used, for jobs that pass it to SyncReplicasOptimizer.
          patience: seconds of silence after which the chief gives up the batch that a worker is at,
            and a worker gives up the chief; the log or the error says who is missing.
          audit: path of a file to which the chief appends what becomes of every ticket, see
            `semisync.audit`.

        Raises:
          UsageError: an argument is not what it should be, or `audit` cannot be written.
        """
        return GlobalBatchHook(self._built, is_chief, patience, audit, self._ready)

    def _built(self):
        """The `Handles` of the default graph."""
        handles = self._in_graph.of().handles
        if handles is None:
            raise UsageError(
                "this GlobalBatchOptimizer applies no gradients in the session's graph: call "
                "minimize or apply_gradients before the session is made"
            )
        return handles

    def _ready(self):
        """Takes the updates that the chief now makes out of the default graph, which is whole."""
        here = self._in_graph.of()
        if here.replaced:
            disconnect(tf.get_default_graph(), here.replaced)
        if here.uncounted:
            here.uncounted.enforce()
        here.replaced, here.uncounted = [], None

    def get_slot(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        return self._wrapped.optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """As the wrapped optimizer's."""
        return self._wrapped.optimizer.get_slot_names(*args, **kwargs)

    def variables(self):
        """As the wrapped optimizer's."""
        return self._wrapped.optimizer.variables()


def _step_to_count(global_step):
    """The variable that an optimizer counts, given its argument; None where a sibling counts."""
    if global_step is not None:
        return arguments.global_step(global_step)
    if siblings.counted_step() is not None:
        return None
    step = tf.train.get_global_step()
    if step is None:
        raise UsageError(
            "GlobalBatchOptimizer counts global batches: pass "
            "global_step=tf.train.get_or_create_global_step() to minimize or apply_gradients"
        )
    return arguments.global_step(step)


def _gradients_of(combined):
    """The (gradient, variable) pairs among what M batches make of each item of the payload."""
    items = [item for item in combined if not isinstance(item, Record)]
    return [pair for item in items for pair in combined[item]]


def _pass(gate, gradient):
    if isinstance(gradient, tf.IndexedSlices):
        values, ids = gate(gradient.values), gate(gradient.indices)
        return tf.IndexedSlices(values, ids, gradient.dense_shape)
    return gate(gradient)
