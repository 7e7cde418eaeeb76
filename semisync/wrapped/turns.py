"""Several wrapped train ops of one graph, which a job runs in turns, as those of a GAN.

Two of them are *siblings* if the gradients of one read variables that the other trains. A run may
train both at once: then their batches are computed at one moment, and each counts its own global
steps. If a run trains one without the other, they are in turns, and a step of one makes the other's
gradients late:

Every worker, before a run that trains an optimizer without a sibling
1. records on the PS that the two are in turns, once;
2. if they are paced, waits until its last such batch is applied, or has another fate, since its
   next ticket must not be drawn before that (`semisync.worker.turn`);
3. draws its ticket, and reads the token now, not at the end of the previous run, so that a
   sibling's step in between does not count as staleness.

The chief of each optimizer
4. adds 1 to the clock of each sibling in turns that reads variables it trains, in the run that
   applies its global batch, before the batches' fates are known. So a worker that waited for these
   finds the clock and the variables of a whole step; and staleness, clock - token, counts siblings'
   steps.
5. weighs its batches under the step lock of the graph, so that no sibling holds it, and under which
   all chiefs of the graph, which one process runs, count in each other's clocks.
6. Paced and in turns, applies a smaller global batch if no more batches will come: every worker
   waits, for it or a sibling (`semisync.chief.turns`).

So with as many workers as batches in a global step, all of which run the same train ops, each
global step combines gradients computed from the same, newest values, like a step of one process.
"""

import itertools
from typing import Any, Dict, List, NamedTuple, Optional

from semisync.common.compat import tf
from semisync.common.per_graph import PerGraph
from semisync.common.walks import reachable
from semisync.fate import Fate
from semisync.pacing import PacedSteps
from semisync.transport.graph_ops import value_or_initial
from semisync.transport.job_state import variable
from semisync.worker.trains_in import before
from semisync.wrapped import siblings
from semisync.wrapped.row_table import RowTable


class Other(NamedTuple):
    """A sibling of an optimizer.

    Attributes:
        number: of the sibling.
        state: the op that every run which trains the sibling needs.
        note: the op that records that the two are in turns.
        reads: whether the sibling's gradients read variables that the optimizer trains.
    """

    number: int
    state: Any
    note: Any
    reads: bool


class Turns(NamedTuple):
    """The ops of an optimizer with siblings.

    Attributes:
        number: of the optimizer.
        others: list of `Other`.
        renew: the op by which a worker reads the token of its ticket anew.
        settled: bool tensor: the fate of this worker's last batch is known, or needs no waiting.
        waits: whether a worker may have to wait for that.
        now_in_turns: of each other, whether it is in turns with it, int64 [n].
        in_turns: the same, to be fetched with the global step, which counts in the clocks of those
            that are and that read the trained variables.
        new_paced, pace: placeholder, and the op by which the chief publishes whether it is paced;
            None if it always is, or never.
    """

    number: int
    others: List[Other]
    renew: Any
    settled: Any
    waits: bool
    now_in_turns: Any
    in_turns: Any
    new_paced: Any
    pace: Any


_turns = PerGraph(dict)  # number -> its `Turns`, or None; of a graph that is complete


def of(number):
    """The `Turns` of an optimizer of the default graph, which is complete, or None."""
    if not _turns.of():
        with tf.control_dependencies(None), tf.name_scope(None):
            _turns.of().update(_build(siblings.built()))
    return _turns.of().get(number)


def _build(noted):
    """{number: `Turns` or None} of a list of `Sibling`."""
    read = {one.number: _read(one) if len(noted) > 1 else set() for one in noted}
    others: Dict[int, List[Other]] = {one.number: [] for one in noted}
    flags: Dict[int, List[Any]] = {one.number: [] for one in noted}
    in_turns: Dict[int, List[Any]] = {one.number: [] for one in noted}
    for first, second in itertools.combinations(noted, 2):
        # Siblings that read nothing of each other commute, and need no turns.
        is_read = [_reads(read[b.number], a) for a, b in ((first, second), (second, first))]
        if not any(is_read):
            continue
        with tf.device(first.job_state.device):
            flag = variable("{}/in_turns_with_{}".format(second.name, first.name), 0, tf.int64)
            note = flag.assign(1, read_value=False)
        for one, other, reads in zip((first, second), (second, first), is_read):
            others[one.number].append(Other(other.number, other.state.variable.op, note, reads))
            flags[one.number].append(flag)
            in_turns[one.number].append(_count(one, other if reads else None, flag))
    return {
        one.number: _of_one(one, others[one.number], flags[one.number], in_turns[one.number])
        if others[one.number]
        else None
        for one in noted
    }


def _read(sibling):
    """The ops from which the gradients of a batch are computed, a set."""
    return set(reachable([tensor.op for tensor in sibling.gradients], before))


def _reads(above, trained):
    """Whether ops read variables that a sibling trains; assumed for a `RowTable`, whose reads are
    not known."""
    return any(isinstance(v, RowTable) or v.op in above for v in trained.variables)


def _count(trained, reading, flag):
    """Has the steps of one count in the clock of another, or None, if `flag` is 1.

    Returns:
        The value of the flag that was used.
    """
    with tf.control_dependencies([trained.applied]), tf.device(flag.device):
        is_set = value_or_initial(flag)
    if reading:
        with tf.device(reading.job_state.device):
            # No clock is there before its chief has opened the job.
            tick = tf.cond(tf.equal(is_set, 1), reading.job_state.tick, tf.no_op)
            trained.counted._add_control_inputs([getattr(tick, "op", tick)])
    return is_set


def _of_one(sibling, others, flags, in_turns):
    state, job_state = sibling.state, sibling.job_state
    with tf.device(job_state.device):
        new_paced = pace = None
        is_paced: Optional[Any] = None
        if isinstance(sibling.paced, PacedSteps):
            paced = variable(sibling.name + "/paced", 0, tf.int64)
            new_paced = tf.placeholder(tf.int64, [], name="new_paced")
            pace, is_paced = paced.assign(new_paced, read_value=False), value_or_initial(paced)
        now_in_turns = tf.stack(list(map(value_or_initial, flags)))
        settled = _settled(job_state, state.last(), is_paced)
        renew = state.renew(job_state.read_clock(), job_state.read_fresh_for())
    return Turns(
        number=sibling.number,
        others=others,
        renew=renew,
        settled=settled,
        waits=sibling.paced is True or is_paced is not None,
        now_in_turns=now_in_turns,
        in_turns=tf.stack(in_turns),
        new_paced=new_paced,
        pace=pace,
    )


def _settled(job_state, ticket, is_paced):
    """Whether a ticket's fate is known; where its chief is gone, it never will be."""
    known = tf.not_equal(job_state.fate_of(ticket)[0], int(Fate.PENDING))
    settled = tf.logical_or(known, tf.greater(job_state.read_epoch(), ticket))
    return settled if is_paced is None else tf.logical_or(settled, tf.equal(is_paced, 0))
