"""Builds the ops of one `GlobalBatchOptimizer` in one graph, the worker's part and the chief's.

1. The payload: the data that each batch sends to each PS, under the ticket of the batch.
2. The chief's step: M payloads are taken and combined; the optimizer applies the result.
3. The hyperparameters that go with each batch, which step 2 has turned up, join the payload.
4. The handles: the ops that the hook and the chief's thread run.
5. The worker's train op.
6. A record of how the plain job would train (`semisync.wrapped.plain_step`).

Nothing but the last waits for the caller's ops before the train op, such as UPDATE_OPS,
which need a batch: the chief has none, nor have a worker's first and last messages.
"""

import functools
from typing import Any, Dict, List, NamedTuple

from graph_rewrite.graph.functions import home
from semisync import arguments
from semisync.chief import operations as chief
from semisync.common.compat import raw_ops, tf
from semisync.handles import Handles
from semisync.pacing import leaves_tickets
from semisync.request import Built
from semisync.settings import Settings, weights_at_probes
from semisync.staleness import may_reject
from semisync.transport.graph_ops import on_cpu
from semisync.transport.job_state import JobState
from semisync.transport.mailbox import Mailbox
from semisync.transport.payload import StackedTensors, items_by_device
from semisync.transport.staging import Staging
from semisync.worker import operations as worker
from semisync.worker.state import TICKET
from semisync.worker.watchdog import pings
from semisync.wrapped import (
    hash_tables,
    hyperparameters,
    plain_step,
    row_table,
    siblings,
    summaries,
)
from semisync.wrapped.global_step import SoleCounter, count, step_to_count


class _Plan(NamedTuple):
    """The gradients by their way to the variables, and the counted variables."""

    modes: List[str]  # of each pair
    together: List[Any]  # the pairs that the chief applies
    at_once: List[Any]  # the pairs that each worker applies
    to_count: Any  # the variable that this optimizer counts, or None
    counted: Any  # the variable that counts global batches


class _Transport(NamedTuple):
    """The state shared by the processes: on the global step's PS, and `areas` on each PS."""

    mailbox: Mailbox
    job_state: JobState
    areas: List[Staging]


class _ChiefStep(NamedTuple):
    """The op that applies a global batch, its hyperparameters, and the gradients it applies."""

    op: Any
    hyperparameters: Any
    gradients: List[Any]
    sole_counter: Any
    applied: Any  # the wrapped optimizer's op
    beyond: Any  # a NoOp after `applied`, for which `op` waits
    updates: List[Any]  # the op of each item of the extras


def build(request):
    """Returns the `Built`."""
    options, plan = request.options, _plan(request)
    device = on_cpu(plan.counted.device)
    own_items = list(request.extras.items)
    request.add_updates(request.extras)
    limited = bool(options.paced) or options.in_flight is not None
    place = siblings.join(options.name, plan.to_count, limited)
    with tf.control_dependencies(None):
        with tf.name_scope(request.name, options.name) as scope:
            transport = _transport(request, plan, place.shared_name, device)
            with tf.device(device):
                aggregation = chief.Aggregation(options.batches_per_step, transport.job_state)
                combined = _combined(aggregation, transport.areas)
        # Outside the name scope: the wrapped optimizer's variables keep their names.
        with tf.device(_beside_the_step(device)):
            step = _chief_step(request, plan, combined, transport.job_state)
        with tf.name_scope(scope):
            with tf.device(device):
                per_batch = hyperparameters.aggregate(
                    step.hyperparameters, place.shared_name, device, aggregation
                )
            transport = transport._replace(areas=transport.areas + per_batch.areas)
            ready = _ready(transport.areas, plan.at_once)
            member = worker.Member(transport.mailbox, transport.job_state, worker.own_device(ready))
            trained = [variable for _, variable in plan.together]
            arguments.shared(trained, member.state.device, plan.counted.device)
            transport.job_state.summaries()
            with tf.device(device):
                trained_op, applied, counted = _after(step.op, per_batch.keep)
            handles = Handles(
                settings=_settings(request, plan.modes),
                chief=chief.ChiefOps(
                    open=chief.build_open_ops(
                        mailbox=transport.mailbox,
                        job_state=transport.job_state,
                        areas=transport.areas,
                        first_clock=functools.partial(_first_clock, device, plan.counted),
                        forget=per_batch.begin,
                        size=options.batches_per_step,
                    ),
                    mailbox=transport.mailbox.chief_ops(
                        options.batches_per_step, transport.job_state
                    ),
                    job_state=transport.job_state.chief_ops(),
                    payload=chief.build_payload_ops(transport.areas, transport.job_state, device),
                    step=chief.build_step_ops(
                        applied=[counted],
                        aggregation=aggregation,
                        job_state=transport.job_state,
                        staleness_policy=options.staleness,
                        own_device=member.state.device,
                    ),
                ),
                worker=_worker_ops(request, plan, member),
                # Paced, a worker leaves the tickets that it has no batch for to the others.
                draws_between_runs=leaves_tickets(options.paced) or place.draws_between_runs,
                number=place.number,
                global_step=plan.counted.op,
                unfed=sorted(step.hyperparameters.unfed),
            )
    with tf.name_scope(scope):
        send = _sender(transport.areas, request.optimizer, plan.at_once)
        train_op = _train_op(
            request, plan, member, transport.areas, ready, send, handles.draws_between_runs
        )
        _note_plain_step(request, plan, combined, own_items, step, per_batch.means, train_op)
    siblings.built().append(
        siblings.Sibling(
            name=place.shared_name,
            number=place.number,
            paced=options.paced,
            variables=[variable for _, variable in request.pairs],
            gradients=ready,
            job_state=transport.job_state,
            state=member.state,
            train_op=getattr(train_op, "op", train_op),
            global_step=plan.counted.op,
            trained=trained_op,
            applied=applied,
            counted=counted,
        )
    )
    return Built(
        train_op=train_op,
        handles=handles,
        aggregated_gradients=step.gradients,
        sole_counter=step.sole_counter,
    )


def _plan(request):
    options = request.options
    modes = [options.mode_of(*pair) for pair in request.pairs]
    to_count = step_to_count(request.global_step)
    counted = siblings.counted_step() if to_count is None else to_count
    return _Plan(
        modes=modes,
        together=[pair for pair, mode in zip(request.pairs, modes) if mode == "semi-sync"],
        at_once=hash_tables.look_ups(
            [pair for pair, mode in zip(request.pairs, modes) if mode == "async"]
        ),
        to_count=to_count,
        counted=counted,
    )


def _transport(request, plan, name, device):
    items = items_by_device(
        plan.together,
        request.extras.items,
        request.options.batches_per_step,
        request.options.sparse_mean,
    )
    areas = [
        Staging("{}/staging_{}".format(name, number), ps, on_ps)
        for number, (ps, on_ps) in enumerate(items.items())
    ]
    return _Transport(Mailbox(name, device), JobState(name, device), areas)


def _combined(aggregation, areas):
    """{item of the payload: its combination over M batches}."""
    combined: Dict[Any, Any] = {}
    for staging in areas:
        combined.update(aggregation.combine(staging))
    return combined


def _chief_step(request, plan, combined, job_state):
    """Returns the `_ChiefStep`; no batch has sent its hyperparameters so far."""
    gradients = [
        pair for item in combined if not isinstance(item, StackedTensors) for pair in combined[item]
    ]
    if plan.at_once:
        request.optimizer.make_slots([variable for _, variable in gradients + plan.at_once])
    updates = [item.update(*combined[item]) for item in request.extras.items]
    applied, found, counts, made = request.optimizer.apply_global_batch(
        gradients, request.global_step, updates
    )
    with tf.control_dependencies([applied]):
        beyond = tf.no_op()
    kept = [summaries.keep(made, job_state)] if made else []
    op, sole_counter = tf.group(beyond, *updates, *kept), None
    if plan.to_count is not None and not counts:
        with tf.control_dependencies([op]):
            op = count(plan.to_count)
        sole_counter = SoleCounter(plan.to_count, op, given=request.global_step is not None)
    return _ChiefStep(op, found, gradients, sole_counter, applied, beyond, updates)


def _after(*applied):
    """Three ops, one after the other, once a global batch is applied.

    The job's ops behind its train op (`semisync.wrapped.behind`) wait for the first, the clocks of
    siblings (`semisync.wrapped.turns`) for the second, the optimizer's own clock and the fates of
    its batches for the third.
    """
    ops: List[Any] = []
    for name in ("trained", "applied", "counted"):
        with tf.control_dependencies(ops[-1:] or applied):
            ops.append(tf.no_op(name=name))
    return ops


def _beside_the_step(device):
    """A device function that puts constants and groups of ops on `device`, beside the step, where
    they cost no message between worker and PS."""
    return lambda op: device if op.type in ("Const", "NoOp") else op.device


def _ready(areas, at_once, but=()):
    """The tensors that are there once the batch's gradients are; `but`: types of items left out."""
    items = [item for area in areas for item in area.items if not isinstance(item, but)]
    payload = [tensor for item in items for tensor in item.tensors]
    return payload + [_values(gradient) for gradient, _ in at_once]


def _settings(request, modes):
    options = request.options
    variables = [
        "{} {} {}".format(mode, variable.op.name, type(gradient).__name__)
        for mode, (gradient, variable) in zip(modes, request.pairs)
    ]
    return Settings(
        batches_per_step=options.batches_per_step,
        on_stale=options.on_stale,
        on_nonfinite=options.on_nonfinite,
        paced=options.paced,
        in_flight=options.in_flight,
        hyperparameters=request.optimizer.own_numbers(),
        payload=variables + [options.sparse_mean, options.batch_norm] + request.extras.replaced,
    )


def _first_clock(device, global_step):
    with tf.device(device):
        # A copy: the value of a reference variable is an alias, fetched as it is later.
        return tf.cast(raw_ops.DeepCopy(x=global_step), tf.int64)


def _worker_ops(request, plan, member):
    with tf.device(member.state.device):
        weights = weights_at_probes(request.options.staleness)
    devices = [plan.counted.device] + [variable.device for _, variable in request.pairs]
    return worker.build_worker_ops(member, weights=weights, pings=pings(devices))


def _train_op(request, plan, member, areas, ready, send, draws_between_runs):
    staleness_policy = request.options.staleness
    # As they are sent: few tensors hold the gradients of many variables.
    gradients = _ready(areas, plan.at_once, but=StackedTensors)
    return worker.build_train_op(
        member,
        ready=ready,
        guarded=[] if request.options.on_nonfinite == "keep" else gradients,
        # The last variables are mostly the last layers', whose gradients come first.
        early=_values(request.pairs[-1][0]),
        staleness_policy=staleness_policy if may_reject(staleness_policy) else None,
        send=send,
        draw=not draws_between_runs,
        rationed=bool(request.options.paced) or request.options.in_flight is not None,
    )


def _note_plain_step(request, plan, combined, own_items, step, means, train_op):
    """Records the plain job's step, if it can be described: see `semisync.wrapped.plain_step`."""
    if plan.at_once or any(map(home, request.extras.replaced)):
        return
    if row_table.divided(plan.together)[0]:
        return
    own = {variable.op.name: gradient for gradient, variable in plan.together}
    tensors = means + (step.sole_counter.counts if step.sole_counter else [])
    for item in own_items:
        weights, columns = combined[item]
        tensors += zip([weights, *columns], item.tensors)
    updates = step.updates[: len(own_items)]
    graph = tf.get_default_graph()
    replaced = [graph.get_operation_by_name(name) for name in request.extras.replaced]
    plain_step.note(
        gradients=[(gradient, own[v.op.name], v) for gradient, v in step.gradients],
        tensors=tensors,
        waits={
            getattr(train_op, "op", train_op): [step.applied, *updates, *replaced],
            step.beyond: [],
        },
    )


def _sender(areas, optimizer, at_once):
    """The function by which a worker sends a batch, see `build_train_op`."""

    def send(batch, gate):
        staged = []
        for area in areas:
            with tf.device(area.device):  # or the ticket would be another message
                ticket = tf.unstack(batch)[TICKET]
            gated = [[gate(tensor) for tensor in item.tensors] for item in area.items]
            staged.append(area.put(ticket, gated))
        with tf.control_dependencies([batch]):
            pairs = [(_gated(gate, gradient), variable) for gradient, variable in at_once]
            return staged + optimizer.apply_batch(pairs)

    return send


def _gated(gate, gradient):
    if isinstance(gradient, tf.IndexedSlices):
        values, ids = gate(gradient.values), gate(gradient.indices)
        return tf.IndexedSlices(values, ids, gradient.dense_shape)
    return gate(gradient)


def _values(gradient):
    return getattr(gradient, "values", gradient)
