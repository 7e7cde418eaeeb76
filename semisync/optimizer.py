"""Global Batch Aggregation around any TensorFlow optimizer (GBA, NeurIPS 2022, arXiv 2205.11048).

The protocol, by role. M is the number of local batches in a global batch.

Every worker, in one run of its train op:
1. It holds a ticket, drawn at the end of the run before, and with it a token: the clock, which
   counts global batches, at that moment. It reads the parameters afterwards, so the token never
   understates the staleness.
2. It computes its gradients. If the batch is too stale by now it sends nothing, and the chief is
   notified. Otherwise it stages them on each PS, under the ticket.
3. Once every PS has its part it draws the next ticket, and reads the next token.
4. One message gives the chief both: ticket and token of this batch, which makes it count, and the
   ticket that the worker holds now. A worker that dies before leaves nothing that anyone waits for.
   (With in_flight it notifies the chief before it draws; paced, it draws before its next run.)

The chief, in a thread beside its own training:
5. It waits until as many messages have come as it lacks batches. Of every M batches it makes a
   global batch: the same M on every PS, in whatever order their parts arrived.
6. It computes the staleness of each batch exactly, as clock - token; the staleness policy turns it
   into a weight. It multiplies batches by their weight where that is not 1, and replaces those of
   weight 0 by nothing (or, with on_stale="drop", by other batches).
7. Each PS takes the M payloads, combines them and applies the result once with the wrapped
   optimizer; then the global step and the clock grow by one.
8. It issues new tickets, so that no worker waits (or, paced, exactly M for the next step).

At the end each worker returns its ticket. The chief continues until all workers have left, applies
what is left as one smaller global batch (divided by its own number of batches), and saves.

A global batch whose batches are all stale is applied like any other, with a mean of zero: Adam's
moments decay, the step grows. A PS's memory is bounded: see `semisync.chief.ledger`.

Variables whose policy is "async" are not part of this: each worker applies its gradient to them at
once, as the wrapped optimizer alone would, before it notifies the chief.
"""

from typing import Any

from graph_rewrite.batch_norm.find import find_batch_norms
from semisync import arguments, options
from semisync.aggregate import updates as shared
from semisync.builder import build
from semisync.common.compat import tf
from semisync.common.errors import UsageError
from semisync.common.per_graph import PerGraph
from semisync.request import InGraph, Request
from semisync.worker.hook import GlobalBatchHook
from semisync.wrapped import hash_tables, row_table
from semisync.wrapped.optimizer import WrappedOptimizer


class GlobalBatchOptimizer(tf.train.Optimizer):
    """Wraps a tf.compat.v1 optimizer; `minimize` then trains semi-synchronously.

    The learning rate and every other hyperparameter stay those of the synchronous job whose global
    batch is batches_per_step x the local batch. Variables, slots and their names are the wrapped
    optimizer's own: checkpoints are the same with and without the wrapper.

    Args:
        optimizer: any tf.compat.v1.train.Optimizer.
        batches_per_step: M, global batch / local batch. Need not be the number of workers.
        staleness: the staleness policy, see `semisync.staleness`. None counts every batch fully.
        on_stale: the slot of a batch of weight 0: "keep" leaves it empty (GBA),
            "drop" gives it to another batch.
        on_nonfinite: the fate of a batch with a NaN or an infinity in a gradient: "drop" gives
            its slot to another batch, and ends the training after 100 of them in a row; "stop" ends
            it at the first; "keep" counts it, and the model is NaN from then on. None: "keep" for
            an optimizer that scales the loss, which looks for them itself, else "drop".
        sparse_mean: "batches" divides an id's summed gradient by M, as the global batch does;
            "touches" by the number of batches that met the id (GBA); "sum" by nothing.
        policy: list of (regex, "semi-sync" | "async"): the first whose regex is found in a
            variable's name decides its mode. Or a function (gradient, variable) -> one of the
            two. None: every variable is "semi-sync".
        batch_norm: "aggregate" has BatchNorm's moving statistics share the fate of their batch and
            decay as with M local updates per global step; "aggregate-once" decays them as one step
            with the global batch would; "async" leaves their updates alone. See
            `semisync.aggregate.batch_norm`.
        shared_updates: list of (regex, "sum" | "mean" | "last"): the updates of the variables that
            are not trained and whose names a regex finds, such as counters, share the fate of their
            batch. See `semisync.aggregate.updates`.
        paced: True hands out exactly M tickets per global step: synchronous, staleness zero.
            `PacedSteps` does so at some global steps.
        in_flight: how many tickets may be out at once, that is batches between reading their
            parameters and being staged on the PS; further workers wait. None: one per worker.
            `MeanStaleness(s)`: as many as make the mean staleness s at most; "auto" is s = 1.
        repeated_ids: of tables in hash tables (TFRA): "sum" adds up the gradients of an id that a
            look-up has several times, as those of a variable; "last" keeps the last one alone, as
            TFRA by itself does, for a job that was tuned to that.
        variable_averages, variables_to_average: as of SyncReplicasOptimizer: a
            tf.train.ExponentialMovingAverage, which moves with each global step, and the variables
            that it averages, by default all that are trainable.
        name: of the ops, and of the queues on the PS; the same in every process.

    Attributes:
        fate: int64 tensor [2], made by minimize: the fate of this worker's last batch
            (`semisync.Fate`) and its staleness; (PENDING, -1) until it is decided. Fetched together
            with the train op it is that of the batch before.
        aggregated_gradients: the global batch's gradients as a list of (gradient, variable); the
            chief's hook can fetch tensors computed from them, see `GlobalBatchHook.observe`.

    Raises:
        UsageError: an argument is invalid.

    Examples:
        >>> weight = tf.get_variable("weight", initializer=0.0)
        >>> step = tf.train.get_or_create_global_step()
        >>> opt = tf.train.GradientDescentOptimizer(0.5)
        >>> opt = semisync.GlobalBatchOptimizer(opt, batches_per_step=2)
        >>> train_op = opt.minimize(tf.square(weight - 1.0) / 2, global_step=step)
        >>> hook = opt.make_session_run_hook(is_chief=True)  # in every worker; one of them is chief
        >>> with tf.train.MonitoredTrainingSession(hooks=[hook]) as session:
        ...     for _ in range(8):
        ...         _ = session.run(train_op)
        >>> hook.ledger.fates["admitted"]
        8
    """

    def __init__(
        self,
        optimizer,
        batches_per_step,
        staleness=None,
        on_stale="keep",
        on_nonfinite=None,
        sparse_mean="batches",
        policy=None,
        batch_norm="aggregate",
        shared_updates=None,
        paced=False,
        in_flight=None,
        repeated_ids="sum",
        variable_averages=None,
        variables_to_average=None,
        name="GlobalBatch",
    ):
        aggregating = (tf.train.SyncReplicasOptimizer, GlobalBatchOptimizer)
        self._wrapped = WrappedOptimizer(arguments.plain_optimizer(optimizer, aggregating))
        self.options = options.checked(
            batches_per_step=batches_per_step,
            staleness=staleness,
            on_stale=on_stale,
            on_nonfinite=on_nonfinite or self._wrapped.on_nonfinite,
            sparse_mean=sparse_mean,
            policy=policy,
            batch_norm=batch_norm,
            shared_updates=shared_updates,
            paced=paced,
            in_flight=in_flight,
            repeated_ids=repeated_ids,
            name=name,
        )
        self._averages = arguments.averages(variable_averages, variables_to_average)
        super().__init__(use_locking=False, name=name)
        self._in_graph = PerGraph(InGraph)
        self._last: Any = None  # the last built `Handles`

    @property
    def batches_per_step(self):
        return self.options.batches_per_step

    @property
    def handles(self):
        """The `Handles` of the default graph, else those built last, or None."""
        return self._built and self._built.handles

    @property
    def fate(self):
        return self.handles and self.handles.worker.fate

    @property
    def aggregated_gradients(self):
        return self._built and self._built.aggregated_gradients

    @property
    def _built(self):
        return self._in_graph.of().built or self._last

    def __getattr__(self, name):
        raise arguments.no_attribute(name)

    def compute_gradients(self, *args, **kwargs):
        """The wrapped optimizer's gradients, a list of (gradient, variable).

        Args:
            *args: of the wrapped optimizer's `compute_gradients`.
            **kwargs: the same.

        Returns:
            A list of (gradient, variable).
        """
        arguments.graph_mode()
        return self._wrapped.optimizer.compute_gradients(*args, **kwargs)

    def aggregate(self, tensors, device, update):
        """Has more than gradients share the fate of each batch; call it before apply_gradients.

        Args:
            tensors: of this batch, a list of tensors of static shapes.
            device: of the PS that keeps them.
            update: (weights float32 [k], list of tensors [k, ...]) -> op, built once: what a global
                step does with those of its k batches whose weight is not 0.
        """
        self._in_graph.of().extras.add(tensors, device, update)

    def minimize(self, *args, **kwargs):
        """As tf.compat.v1.train.Optimizer's: `compute_gradients`, then `apply_gradients`.

        Args:
            *args: of that class's `minimize`.
            **kwargs: the same; others are for `apply_gradients`.

        Returns:
            The train op.

        Raises:
            UsageError: see `apply_gradients`.
        """
        computing, applying = arguments.of_minimize(args, kwargs)
        return self.apply_gradients(self.compute_gradients(**computing), **applying)

    def apply_gradients(self, grads_and_vars, global_step=None, name=None, **more):
        """Builds the worker's train op and the chief's step.

        Args:
            grads_and_vars: as compute_gradients returns it; pairs without a gradient are left out.
            global_step: counts global batches. None: the one that another GlobalBatchOptimizer of
                the graph counts already, else the graph's own, which the job then no longer counts.
            name: of the train op.
            **more: of the wrapped optimizer's `apply_gradients`, such as the decay_var_list of
                tf.contrib.opt.AdamWOptimizer.

        Returns:
            The train op.

        Raises:
            UsageError: no gradient or one of another shape, no global step, a second call in one
                graph, no place to build a train op in, or an argument that the wrapped optimizer
                does not take.
        """
        arguments.graph_mode()
        arguments.of_apply_gradients(self._wrapped.optimizer, more)
        pairs = hash_tables.by_shard(grads_and_vars, self.options.repeated_ids)
        pairs = arguments.gradients(pairs)
        pairs = arguments.of_their_shapes(row_table.checked(pairs))
        hash_tables.prepare(self, self._wrapped.optimizer, pairs)
        here = self._in_graph.of()
        if here.built is not None:
            raise UsageError(
                "this GlobalBatchOptimizer already applies gradients in this graph: make one per "
                "train op"
            )
        arguments.warn_of_idle_rules(self.options.mode_of, pairs)
        collected = tf.get_collection(tf.GraphKeys.TRAIN_OP)
        # Entered for its unique name alone, which the ops of `build` and the train op take.
        with tf.name_scope(name, self.options.name) as scope:
            pass
        here.built = self._last = build(
            Request(
                options=self.options,
                optimizer=self._wrapped.with_arguments(more),
                pairs=pairs,
                extras=here.extras,
                add_updates=self._add_updates,
                global_step=global_step,
                name=scope,
            )
        )
        train_op = tf.group(here.built.train_op, *self._averaging(here.built), name=scope)
        # In place of the chief's step, which the wrapped optimizer has collected.
        tf.get_collection_ref(tf.GraphKeys.TRAIN_OP)[:] = collected + [train_op]
        return train_op

    def _averaging(self, built):
        """The ops that move the averages, behind the train op, a list; see `wrapped.behind`."""
        averages, variables = self._averages
        if averages is None:
            return []
        with tf.control_dependencies([built.train_op]), tf.name_scope(None):
            return [averages.apply(variables)]

    def _add_updates(self, extras):
        """Has BatchNorm's statistics and the shared updates join the payload."""
        graph = tf.get_default_graph()
        if self.options.batch_norm != "async":
            extras.add_batch_norms(find_batch_norms(graph), self.options.batch_norm)
        extras.add_updates(shared.find(graph, self.options.shared_updates, extras.replaced))

    def make_session_run_hook(self, is_chief, num_tokens=None, patience=120.0, audit=None):
        """The hook that every worker passes to its MonitoredTrainingSession.

        It may be made before minimize, and serve one session after another, also of other graphs.

        Args:
            is_chief: True in exactly one process, which applies the global batches.
            num_tokens: accepted, and not used, for jobs that pass it to SyncReplicasOptimizer.
            patience: seconds without a sign of life after which the chief gives up the batch of a
                worker, and a worker gives up the chief, 4 or more; the log or the error names the
                missing. A worker that waits for input, or computes for long, gives signs of life.
            audit: path of a file to which the chief appends the fate of every ticket, see
                `semisync.audit`.

        Returns:
            A `GlobalBatchHook`, a tf.train.SessionRunHook.

        Raises:
            UsageError: an argument is invalid, or `audit` cannot be written.
        """
        return GlobalBatchHook(
            self._handles_here,
            is_chief,
            patience=patience,
            audit=audit,
            ready=lambda: self._in_graph.of().make_ready(),
        )

    def _handles_here(self):
        built = self._in_graph.of().built
        if built is None:
            raise UsageError(
                "this GlobalBatchOptimizer applies no gradients in the session's graph: call "
                "minimize or apply_gradients before the session is made"
            )
        return built.handles

    def get_slot(self, *args, **kwargs):
        """The wrapped optimizer's slot.

        Args:
            *args: of the wrapped optimizer's `get_slot`.
            **kwargs: the same.

        Returns:
            A variable, or None.
        """
        return self._wrapped.optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        """The names of the wrapped optimizer's slots.

        Args:
            *args: of the wrapped optimizer's `get_slot_names`.
            **kwargs: the same.

        Returns:
            A list of names.
        """
        return self._wrapped.optimizer.get_slot_names(*args, **kwargs)

    def variables(self):
        """The wrapped optimizer's variables.

        Returns:
            A list of variables.
        """
        return self._wrapped.optimizer.variables()
