"""Adam, LazyAdam and DeepRec's AdamAsync: one formula, which differs in the rows that move and in
the steps that the bias correction counts.

    m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
    w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + eps)

A dense variable's update is one op. A table's is several:

    Adam      m and v decay as a whole, Assign(m, m * b1), and have the gradient added,
              ScatterAdd(m, ids, ...); every row moves, AssignSub(w, ...). In older versions
              ScatterAdd takes Assign's output for m
    LazyAdam  rows of m and v are overwritten, ScatterUpdate(m, ids, b1 * gather(m, ids) + ...);
              these rows alone move, ScatterSub(w, ids, ...)

Resource variables have ops of their own for the same. An update of any other form, such as Nadam's,
is none of these.
Source: python/training/adam.py and contrib/opt/python/training/lazy_adam_optimizer.py of 1.15,
python/training/adam.py of 2.21, DeepRec's python/training/adam_async.py.
"""

from __future__ import annotations

import dataclasses

from graph_rewrite.patterns.arithmetic import plus, times
from graph_rewrite.patterns.language import ANY, op
from migrate.optimizers.record import (
    Composed,
    Counterpart,
    Op,
    Optimizer,
    Slot,
    StepCount,
)

POWERS = ("beta1_power", "beta2_power")  # inputs of the op that are not hyperparameters

# lr sqrt(1 - beta2^t) / (1 - beta1^t), in which the powers are variables.
_CORRECTED_RATE = op(
    "RealDiv",
    times("learning_rate", op("Sqrt", op("Sub", ANY, "beta2_power"))),
    op("Sub", ANY, "beta1_power"),
)
_STEP = op("RealDiv", times(_CORRECTED_RATE, "slot 0"), plus(op("Sqrt", "slot 1"), "epsilon"))
_DECAYS = ("beta1", "beta2")
_SCALED = times("grad", op("Sub", ANY, ANY))  # (1 - beta1) g

_ALL_ROWS = Counterpart(
    path="migrate.torchrec.optimizers.Adam",
    arguments={"learning_rate": "lr", "beta1": "beta1", "beta2": "beta2", "epsilon": "eps"},
    always={"rows": "all"},
    only={"nesterov": 0.0},
    dynamicemb="adam",
)
_TOUCHED_ROWS = dataclasses.replace(_ALL_ROWS, always={"rows": "touched"})

_NADAM_NOTE = (
    "{}: its Adam takes Nesterov's step (NadamOptimizer), w -= lr_t (beta1 m + (1 - beta1) g) / "
    "(sqrt(v) + epsilon); nothing here continues that"
)

_INPUTS = "var m v beta1_power beta2_power lr beta1 beta2 epsilon grad"

ADAM = Optimizer(
    name="Adam",
    slots=(
        Slot(name="m", torch="exp_avg", aliases=("adam_m",)),
        Slot(name="v", torch="exp_avg_sq", second_moment=True, aliases=("adam_v",)),
    ),
    # TensorFlow has no SparseApplyAdam: a table's update is several ops.
    ops=(Op("ApplyAdam", _INPUTS, sparse=False),),
    hyperparameters={
        "lr": "learning_rate",
        "beta1": "beta1",
        "beta2": "beta2",
        "epsilon": "epsilon",
    },
    flags={"use_nesterov": "nesterov"},
    composed=Composed(step=_STEP, decays=_DECAYS, rows=False, added=_SCALED),
    counterpart=_ALL_ROWS,
    steps=StepCount(decay="beta2", scalar="beta2_power"),
    keras_epsilon=1e-7,
    setting_notes={"nesterov": _NADAM_NOTE},
    note="Adam: TensorFlow's adds epsilon before the bias correction, torch.optim and FBGEMM after "
    "it: theirs at step t is epsilon / sqrt(1 - beta2^t); and TensorFlow's moves every row of a "
    "table at every step, FBGEMM's the touched rows alone. "
    "migrate.torchrec.optimizers.Adam(rows='all') does as TensorFlow; FBGEMM has no Adam on the "
    "CPU",
)

LAZY_ADAM = dataclasses.replace(
    ADAM,
    name="LazyAdam",
    named_as="Adam",
    ops=(),
    composed=Composed(step=_STEP, decays=_DECAYS, rows=True, added=plus(ANY, _SCALED)),
    counterpart=_TOUCHED_ROWS,
    keras_epsilon=None,
    note="LazyAdam: touched rows alone decay and move, with the bias correction of the global "
    "step, as in FBGEMM; epsilon is added before the bias correction: FBGEMM's and torch's at step "
    "t is epsilon / sqrt(1 - beta2^t). migrate.torchrec.optimizers.Adam(rows='touched') does as "
    "TensorFlow",
)

ADAM_ASYNC = dataclasses.replace(
    ADAM,
    name="AdamAsync",
    # DeepRec counts the powers of beta1 and beta2, scalars, as slots 2 and 3
    slots=tuple(slot._replace(aliases=()) for slot in ADAM.slots),
    ops=(Op("ApplyAdamAsync", _INPUTS),),
    flags={"use_nesterov": "nesterov", "apply_sparse_rmsprop": "sparse_rmsprop"},
    composed=None,
    counterpart=dataclasses.replace(_TOUCHED_ROWS, only={"nesterov": 0.0, "sparse_rmsprop": 0.0}),
    steps=StepCount(decay="beta2", slot=3),
    keras_epsilon=None,
    note="AdamAsync (DeepRec): LazyAdam whose bias correction counts the updates of each variable; "
    "migrate.torchrec.optimizers.Adam(rows='touched') does so from the step that is written. With "
    "apply_sparse_rmsprop tables move otherwise: v = beta2 v + (1 - beta2) g^2, m = beta1 m + lr g "
    "/ sqrt(v + epsilon), w -= m, which is "
    "migrate.torchrec.optimizers.RMSProp(decay=beta2, momentum=beta1) with m as momentum_buffer "
    "and v as square_avg: nothing loads that automatically",
)
