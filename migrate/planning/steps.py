"""How many updates an optimizer with a bias correction, such as Adam, made: its step.

1. The power of beta2 gives it. TensorFlow multiplies it by beta2 at every update, so that it is
   beta2^(t+1) after t of them.
2. Where it does not, the global step stands in, if there is exactly one; but not where each
   variable counts its own updates (AdamAsync) and its power is not known, since the global step
   counts the updates of all workers.
3. Where neither does, no step is written, and a note names the remedy.

The plan names the scalar with that power where a training op takes it as an input; otherwise the
optimizer's record does (`StepCount`).
"""

from __future__ import annotations

import math
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy

from migrate.checkpoint.checkpoint import Checkpoint
from migrate.optimizers.record import StepCount
from migrate.optimizers.registry import OPTIMIZERS
from migrate.planning.plan import Dense, Plan, Table

Trained = Union[Table, Dense]  # the owner of an optimizer

_LARGEST = 1e4  # updates that a power still resolves; beyond, the correction is next to 1


class Step(NamedTuple):
    """The number of updates, and the scalar that gives it."""

    value: float
    source: str


class _Told(NamedTuple):
    """The step, or None, and the reason why the power does not give it; "" if it does."""

    step: Optional[Step]
    reason: str


def optimizer_step(plan: Plan, owner: Trained, checkpoint: Checkpoint) -> Optional[Step]:
    """Updates made so far, as the bias correction of `owner` counts them; None if unknown."""
    count = _count(owner)
    return None if count is None else _told(plan, owner, count, checkpoint).step


def table_step_notes(plan: Plan, tables: Sequence[Table], checkpoint: Checkpoint) -> List[str]:
    """The steps of tables and their sources, or the missing scalar and the remedy; one note for
    all that are alike."""
    alike: Dict[Tuple[Optional[str], str], List[str]] = {}
    for table in tables:
        count = _count(table)
        if count is None:
            continue
        step, reason = _told(plan, table, count, checkpoint)
        if step is None:
            said = _unknown(plan, count, reason)
        else:
            said = f"{step.value:.0f}, from {step.source}" + (f": {reason}" if reason else "")
        alike.setdefault((table.optimizer, said), []).append(table.name)
    return [f"{of}: step of {', '.join(names)} is {said}" for (of, said), names in alike.items()]


def dense_step_notes(plan: Plan, checkpoint: Checkpoint) -> List[str]:
    """Notes on dense variables without a known step, one per reason."""
    by_reason: Dict[Tuple[Optional[str], str], List[str]] = {}
    for dense in plan.dense:
        count = _count(dense)
        if count is None:
            continue
        step, reason = _told(plan, dense, count, checkpoint)
        if step is None:
            why = _unknown(plan, count, reason)
            by_reason.setdefault((dense.optimizer, why), []).append(dense.variable)
    return [f"{of}: step of {', '.join(names)} is {why}" for (of, why), names in by_reason.items()]


def _count(owner: Trained) -> Optional[StepCount]:
    record = OPTIMIZERS.get(owner.optimizer or "")
    return None if record is None else record.steps


def _unknown(plan: Plan, count: StepCount, reason: str) -> str:
    """The note that a step is not known, why, and the remedy."""
    return (
        f"not known: {reason}{_without_global_step(plan, count)}; none is written, so "
        "that its optimizer begins at 0 unless you set state['step'] after load_optimizer"
    )


def _without_global_step(plan: Plan, count: StepCount) -> str:
    """Why the global step does not stand in."""
    if count.scalar is None:
        return ""
    steps = _global_steps(plan)
    if steps:
        return f"; of {', '.join(steps)} leave one in the plan's scalars"
    return "; there is no global_step either"


def _told(plan: Plan, owner: Trained, count: StepCount, checkpoint: Checkpoint) -> _Told:
    powers = _powers(plan, owner, count)
    told = _told_by_powers(powers, owner, count, checkpoint)
    steps = _global_steps(plan)
    stands_in = len(steps) == 1 and (count.scalar is not None or len(powers) == 1)
    if told.step is None and stands_in:
        value = float(checkpoint.read(steps[0]).item())
        return _Told(Step(value, steps[0]), told.reason)
    return told


def _told_by_powers(
    powers: List[str], owner: Trained, count: StepCount, checkpoint: Checkpoint
) -> _Told:
    """The step by the power: a float32 product of t factors, which gives t to about 1e-4."""
    decay = count.decay
    if not powers:
        return _Told(None, f"the plan's scalars have no {decay}_power of it")
    values = {float(checkpoint.read(name).item()) for name in powers}
    if len(values) > 1:
        return _Told(
            None,
            f"{', '.join(powers)} differ, and nothing tells which is its; leave the others out of "
            "the plan's scalars, or out by --drop",
        )
    if decay not in owner.hyperparameters:
        return _Told(
            None,
            f"{powers[0]} tells nothing without {decay}, which no MetaGraph has as a constant; set "
            f"{decay} among its hyperparameters in the plan",
        )
    base = float(numpy.float32(owner.hyperparameters[decay]))  # as it was multiplied
    power = values.pop()
    # Near float32's denormals the product sticks, and no longer shrinks by beta2.
    if 0 < base < 1 and power > 1e-30:
        updates = math.log(power) / math.log(base) - 1
        # Far from an integer: it is the power of another beta2.
        if abs(updates - round(updates)) < 0.1 and updates < _LARGEST:
            return _Told(Step(float(round(updates)), powers[0]), "")
    reason = f"{powers[0]} is {power:g}, which tells no number of updates with {decay} {base:g}"
    return _Told(None, reason)


def _global_steps(plan: Plan) -> List[str]:
    return [name for name in plan.scalars if name.rpartition("/")[2] == "global_step"]


def _powers(plan: Plan, owner: Trained, count: StepCount) -> List[str]:
    """The scalars that may be the power for `owner`: the input of its training op, or else by name.

    The parts of a table in partitions have one each, and so no single step; those of a hash
    table are not scalars.
    """
    if owner.power is not None:
        return [name for name in plan.scalars if name == owner.power]
    leaves = [(name, name.rpartition("/")[2]) for name in plan.scalars]
    if count.scalar is not None:
        power = re.compile(count.scalar + r"(_\d+)?")  # a second Adam's has a number
        return [name for name, leaf in leaves if power.fullmatch(leaf)]
    if isinstance(owner, Table) and owner.ids is not None:
        return []
    first_slot = OPTIMIZERS[owner.optimizer or ""].slots[0]
    first = owner.slots.get(first_slot.torch, "").rpartition("/")[2]
    own = [name for name, leaf in leaves if leaf == f"{first}_{count.slot}"]
    return [name for name in own if name.startswith(owner.variable + "/")]
