"""Adagrad: a += g^2; w -= lr g / sqrt(a)."""

from __future__ import annotations

from migrate.optimizers.record import Counterpart, Op, Optimizer, Slot

ADAGRAD = Optimizer(
    name="Adagrad",
    slots=(
        Slot(
            name="accumulator",
            torch="sum",
            input="accum",
            fused="momentum1",
            initial=0.1,
            setting="initial_accumulator_value",
            second_moment=True,
            # SOK, Keras's name in TFRA, Monolith; Monolith's begins with 0.1, too
            aliases=("adagrad_acc", "adagrad_accumulator", "adagrad_norm"),
        ),
    ),
    ops=(
        Op("ApplyAdagrad", "var accum lr grad"),
        Op("ApplyAdagradV2", "var accum lr epsilon grad"),
    ),
    hyperparameters={"lr": "learning_rate", "epsilon": "epsilon"},
    fixed={"epsilon": 0.0},
    still_at_zero=True,
    counterpart=Counterpart(
        path="torch.optim.Adagrad",
        arguments={"learning_rate": "lr", "epsilon": "eps"},
        always={"eps": 0.0},
        fused=True,
        row_wise="torchrec.optim.RowWiseAdagrad",
        dynamicemb="exact_adagrad",
    ),
    note="Adagrad: TensorFlow adds no epsilon, FBGEMM 1e-8 and torch.optim 1e-10 by default: build "
    "them with eps=0; the accumulators are TensorFlow's, including those of untrained rows (0.1 "
    "unless initial_accumulator_value said otherwise)",
    row_wise_note="row-wise Adagrad of {}: an approximation: FBGEMM's keeps one accumulator per "
    "row and adds the mean of the squared gradient; the mean of the row's accumulators is written, "
    "which is the exact sum it would hold, but each value then moves by lr g / sqrt(mean) instead "
    "of lr g / sqrt of its own",
)
