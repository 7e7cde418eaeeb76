"""What TensorFlow's optimizers compute, and what continues them in torch.

Each note goes into the manifest of a conversion whose tables or dense variables have the
optimizer's slots. Source: tensorflow/core/kernels/training_ops.cc, python/training/*.py;
torch/optim/*.py; FBGEMM's split_embedding_optimizer templates.
"""

from __future__ import annotations

import math
import re
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

import numpy

from migrate.checkpoint.bundle import Checkpoint
from migrate.graph.pooling import without_kernel
from migrate.planning.model import Dense, HashedTable, Plan, Table

Trained = Union[Table, HashedTable, Dense]  # what has an optimizer

_OWN = "migrate.torchrec.optimizers."
_POWER = re.compile(r"beta2_power(_\d+)?")  # a second Adam's has a number
ADAMS = ("Adam", "AdamAsync", "LazyAdam")  # their bias correction counts steps

NOTES: Dict[str, str] = {
    "Adagrad": "Adagrad: TensorFlow adds no epsilon, FBGEMM 1e-8 and torch.optim 1e-10 by default: "
    "build them with eps=0; the accumulators are TensorFlow's, those of untrained rows too (0.1 "
    "unless initial_accumulator_value said otherwise)",
    "Adam": "Adam: TensorFlow's adds epsilon before the bias correction, torch.optim and FBGEMM "
    "after it: theirs at step t is epsilon / sqrt(1 - beta2^t); and TensorFlow's moves every row "
    f"of a table at every step, FBGEMM's the touched rows alone. {_OWN}Adam(rows='all') does as "
    "TensorFlow; FBGEMM has no Adam on the CPU",
    "LazyAdam": "LazyAdam: touched rows alone decay and move, with the bias correction of the "
    "global step, as in FBGEMM; epsilon is added before the bias correction: FBGEMM's and torch's "
    f"at step t is epsilon / sqrt(1 - beta2^t). {_OWN}Adam(rows='touched') does as TensorFlow",
    "AdamAsync": "AdamAsync (DeepRec): LazyAdam whose bias correction counts the updates of each "
    f"variable; {_OWN}Adam(rows='touched') does so from the step that is written. With "
    "apply_sparse_rmsprop tables move otherwise: v = beta2 v + (1 - beta2) g^2, m = beta1 m + lr g "
    f"/ sqrt(v + epsilon), w -= m, which is {_OWN}RMSProp(decay=beta2, momentum=beta1) with m as "
    "momentum_buffer and v as square_avg: nothing loads that by itself",
    "Momentum": "Momentum: dense variables continue in torch.optim.SGD(momentum, dampening=0); in "
    "tables only touched rows decay and move, where SGD moves all: "
    f"{_OWN}Momentum(rows='touched') does as TensorFlow; FBGEMM has none",
    "RMSProp": "RMSProp: TensorFlow adds epsilon inside the root and multiplies the learning rate "
    "into the momentum; torch.optim.RMSprop adds it outside and multiplies afterwards, and starts "
    f"from 0 instead of 1: {_OWN}RMSProp does as TensorFlow; FBGEMM has only a row-wise one",
    "Ftrl": f"Ftrl: torch and FBGEMM have none; {_OWN}Ftrl does as TensorFlow "
    "(learning_rate_power is -0.5)",
    "Adadelta": "Adadelta: torch.optim.Adadelta computes the same on dense variables with rho, "
    "epsilon and learning_rate of TensorFlow (its defaults are others); in tables TensorFlow "
    "moves touched rows alone, torch decays all: nothing continues that",
    "AdaMax": "AdaMax: TensorFlow's u = max(beta2 u, |g|), w -= lr / (1 - beta1^t) m / (u + "
    "epsilon); torch.optim.Adamax's u = max(beta2 u, |g| + epsilon), w -= lr / (1 - beta1^t) m / "
    "u: they differ by epsilon, and nothing continues TensorFlow's exactly",
    "AdagradDA": "AdagradDA: w = -lr sign(G) max(|G| - l1 t, 0) / (l2 lr t + sqrt(A)), with G the "
    "sum of the gradients and A that of their squares; torch and FBGEMM have none, so that its "
    "slots are written and nothing loads them",
    "ProximalAdagrad": "ProximalAdagrad: Adagrad, then w = sign(w) max(|w| - lr' l1, 0) / (1 + "
    "lr' l2) with lr' = lr / sqrt(a); without l1 and l2 it is Adagrad; torch and FBGEMM have none, "
    "so that its slots are written and nothing loads them",
}

NADAM = (
    "{}: its Adam takes Nesterov's step (NadamOptimizer), w -= lr_t (beta1 m + (1 - beta1) g) / "
    "(sqrt(v) + epsilon); nothing here continues that"
)

ROW_WISE = (
    "row-wise Adagrad of {}: an approximation: FBGEMM's keeps one accumulator a row and adds the "
    "mean of the squared gradient; the mean of the row's accumulators is written, which is the "
    "exact sum it would hold, but each value then moves by lr g / sqrt(mean) and not by lr g / "
    "sqrt of its own"
)


class Step(NamedTuple):
    """How many updates Adam made: the number, and the scalar that tells it."""

    value: float
    source: str


def notes(plan: Plan, checkpoint: Checkpoint) -> List[str]:
    """What a reader of the converted tables and of their optimizer state should know."""
    trained: List[Union[Table, HashedTable]] = [
        *(table for table in plan.tables if not table.static),
        *plan.hash_tables,
    ]
    optimizers = {one.optimizer or "" for one in trained}
    optimizers |= {one.optimizer or "" for one in plan.dense}
    found = [NOTES[name] for name in sorted(optimizers) if name in NOTES]
    row_wise = [one.name for one in plan.tables if one.row_wise and not one.static]
    if row_wise:
        found.append(ROW_WISE.format(", ".join(row_wise)))
    for one in plan.tables:
        lacking = without_kernel(one.pooling, one.weighted)
        if lacking:
            found.append(f"pooling of {one.name}: {lacking}")
    for table in trained:
        if table.optimizer in ADAMS and "nesterov" in table.hyperparameters:
            found.append(NADAM.format(table.name))
        if table.optimizer in ADAMS:
            found.append(_step_note(plan, table, checkpoint))
    return found + _dense_step_notes(plan, checkpoint)


def _step_note(plan: Plan, table: Union[Table, HashedTable], checkpoint: Checkpoint) -> str:
    """The step of `table` and what tells it, or what is missing and what settles it."""
    about = f"{table.optimizer}: step of {table.name} is"
    step, reason = _step_and_reason(plan, table, checkpoint)
    if step is None:
        return f"{about} {_unknown(plan, table, reason)}"
    return f"{about} {step.value:.0f}, from {step.source}" + (f": {reason}" if reason else "")


def _dense_step_notes(plan: Plan, checkpoint: Checkpoint) -> List[str]:
    """Of which dense variables the step is not known: one note for each reason."""
    found: Dict[str, List[str]] = {}
    for dense in plan.dense:
        if dense.optimizer in ADAMS:
            step, reason = _step_and_reason(plan, dense, checkpoint)
            if step is None:
                found.setdefault(_unknown(plan, dense, reason), []).append(dense.variable)
    return [f"Adam: step of {', '.join(names)} is {why}" for why, names in found.items()]


def _unknown(plan: Plan, owner: Trained, reason: str) -> str:
    """That a step is not known, why, and what settles it."""
    return (
        f"not known: {reason}{_without_global_step(plan, owner)}; none is written, so "
        "that its optimizer begins at 0 unless you set state['step'] after load_optimizer"
    )


def adam_step(plan: Plan, owner: Trained, checkpoint: Checkpoint) -> Optional[Step]:
    """Updates made so far, as the bias correction counts them: of all, AdamAsync's of the variable.

    Where no beta2_power tells, the global step stands in, if there is exactly one; but not
    where AdamAsync has no power of the table's own: it counts the updates of all workers.
    """
    return _step_and_reason(plan, owner, checkpoint)[0]


def _step_and_reason(
    plan: Plan, owner: Trained, checkpoint: Checkpoint
) -> Tuple[Optional[Step], str]:
    """`adam_step`, and why it is not the power of beta2 that tells it; "" where it is."""
    found, reason = _step_of_power(plan, owner, checkpoint)
    steps = _global_steps(plan)
    if (
        found is None
        and len(steps) == 1
        and not (owner.optimizer == "AdamAsync" and len(_powers(plan, owner)) != 1)
    ):
        found = Step(float(checkpoint.read(steps[0]).item()), steps[0])
    return found, reason


def _step_of_power(
    plan: Plan, owner: Trained, checkpoint: Checkpoint
) -> Tuple[Optional[Step], str]:
    """What the power of beta2 tells; None and why where it does not.

    After t updates it is beta2^(t+1). It is a float32 product of t factors, so that t is known to
    one part in 10^4 or so; not beyond 10^4 updates, where the correction is next to 1.
    """
    powers = _powers(plan, owner)
    if not powers:
        return None, "the plan's scalars have no beta2_power of it"
    values = {float(checkpoint.read(name).item()) for name in powers}
    if len(values) > 1:
        return None, (
            f"{', '.join(powers)} differ, and nothing tells which is its; leave the others out of "
            "the plan's scalars, or out by --drop"
        )
    if "beta2" not in owner.hyperparameters:
        return None, (
            f"{powers[0]} tells nothing without beta2, which no MetaGraph has as a constant; set "
            "beta2 among its hyperparameters in the plan"
        )
    beta2 = float(numpy.float32(owner.hyperparameters["beta2"]))  # as it was multiplied
    power = values.pop()
    if 0 < beta2 < 1 and power > 1e-30:
        updates = math.log(power) / math.log(beta2) - 1
        if abs(updates - round(updates)) < 0.1 and updates < 1e4:
            return Step(float(round(updates)), powers[0]), ""
    return None, f"{powers[0]} is {power:g}, which tells no number of updates with beta2 {beta2:g}"


def _without_global_step(plan: Plan, owner: Trained) -> str:
    """Why the global step does not stand in."""
    if owner.optimizer == "AdamAsync":
        return ""
    steps = _global_steps(plan)
    if steps:
        return f"; of {', '.join(steps)} leave one in the plan's scalars"
    return "; there is no global_step either"


def _global_steps(plan: Plan) -> List[str]:
    return [name for name in plan.scalars if name.rpartition("/")[2] == "global_step"]


def _powers(plan: Plan, owner: Trained) -> List[str]:
    """The scalars that may be beta2^(t+1) for `owner`. AdamAsync has one a variable, its fourth
    slot: a table in partitions has several and no single step, a hash table's are no scalars."""
    if owner.optimizer != "AdamAsync":
        return [name for name in plan.scalars if _POWER.fullmatch(name.rpartition("/")[2])]
    if isinstance(owner, HashedTable):
        return []
    slot = owner.slots.get("exp_avg", "").rpartition("/")[2]
    found = [name for name in plan.scalars if name.rpartition("/")[2] == f"{slot}_3"]
    return [name for name in found if name.startswith(owner.variable + "/")]
