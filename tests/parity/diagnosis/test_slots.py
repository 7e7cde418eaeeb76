"""What slots say of rows that were never trained, for every optimizer that convert knows."""

import numpy as np
import pytest

from migrate.facts.slot_samples import SlotSample, cold_rows


@pytest.mark.parametrize(
    ("optimizer", "initial"),
    [
        ("Adadelta", (0, 0)),
        ("Adam", (0, 0)),
        ("AdamAsync", (0, 0)),
        ("AdaMax", (0, 0)),
        ("Momentum", (0,)),
        ("RMSProp", (1, 0, 0)),  # centered, too
        ("Unknown", ()),
    ],
)
def test_slots_that_no_setting_begins_have_tensorflows_values(optimizer, initial):
    sample = SlotSample(optimizer)
    sample.add(np.float32([0.3, 0.5]))
    assert sample.initial == initial
    assert sample.settings() == {}


@pytest.mark.parametrize(
    ("optimizer", "initial", "setting"),
    [
        ("Adagrad", (0.25,), "initial_accumulator_value"),
        ("AdagradDA", (0, 0.25), "initial_gradient_squared_accumulator_value"),
        ("Ftrl", (0.25, 0), "initial_accumulator_value"),
        ("ProximalAdagrad", (0.25,), "initial_accumulator_value"),
    ],
)
def test_accumulators_begin_with_the_smallest_that_the_model_holds(optimizer, initial, setting):
    sample = SlotSample(optimizer)
    assert sample.settings() == {}
    sample.add(np.float32([0.5, 0.25, 0.75]))
    assert sample.initial == initial
    assert sample.settings() == {setting: 0.25}
    assert sample.denominator() == 0.625


def test_a_row_is_untrained_where_every_slot_begins():
    slots = [np.float32([[1, 1], [1, 1]]), np.float32([[0, 0], [0, 0.5]])]
    rows = [np.ones((2, 2), np.float32)]
    cold = cold_rows(rows, [iter([slot]) for slot in slots], (1, 0))
    assert cold.tolist() == [True, False]
