"""Invariant 8: one checkpoint goes through every mode, and no mode leaves a trace.

Each leg is a new cluster of new processes (1 PS, 2 workers) that goes on from the last checkpoint.
"""

import numpy as np
import pytest

from semisync.cluster.forked import ForkedCluster
from semisync.common.compat import tf
from tests.support.require import LONG
from tests.wrap.switching_job import M

MODES = (
    ["sync", "semi-sync", "async", "plain", "balanced", "hybrid", "sync"]
    if LONG
    else ["semi-sync", "plain", "sync"]
)
BATCHES, WORKERS = 4, 2

pytestmark = pytest.mark.one_tensorflow


class Leg:
    """What one leg left: its checkpoint, and what its chief saw at the start and at the end."""

    def __init__(self, mode, base, checkpoints):
        self.mode = mode
        reader = tf.train.NewCheckpointReader(tf.train.latest_checkpoint(checkpoints))
        self.shapes = reader.get_variable_to_shape_map()
        self.saved = {name: reader.get_tensor(name) for name in self.shapes}
        self.before, self.after = (
            dict(np.load(base + end)) for end in (".before.npz", ".after.npz")
        )


@pytest.fixture(scope="module")
def legs(tmp_path_factory):
    out = tmp_path_factory.mktemp("switching")
    checkpoints, found = str(out / "checkpoints"), []
    for number, mode in enumerate(MODES):
        base = str(out / "leg-{}".format(number))
        logs = tmp_path_factory.mktemp("logs-{}".format(number))
        with ForkedCluster("tests.wrap.switching_job", 1, WORKERS, logs) as cluster:
            cluster.start_all(mode=mode, checkpoints=checkpoints, leg=base, batches=BATCHES)
            cluster.wait(timeout=600)
        found.append(Leg(mode, base, checkpoints))
    return found


def assert_same(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.long
def test_every_mode_saves_the_same_names_and_shapes(legs):
    assert {"table/Adam", "kernel/Adam_1", "beta1_power", "global_step"} <= set(legs[0].shapes)
    for leg in legs[1:]:
        assert leg.shapes == legs[0].shapes


def test_a_leg_begins_with_the_values_of_the_checkpoint_before(legs):
    for earlier, leg in zip(legs, legs[1:]):
        assert_same(leg.before, earlier.saved)


def test_the_checkpoint_holds_the_end_of_its_leg(legs):
    for leg in legs:
        if leg.mode != "plain":  # which saves while the other worker is still training
            assert_same(leg.saved, leg.after)


def test_the_global_step_goes_on_by_global_batches_in_every_mode(legs):
    for leg in legs:
        if leg.mode != "plain":
            assert leg.after["global_step"] - leg.before["global_step"] == WORKERS * BATCHES // M
    plain = legs[MODES.index("plain")]
    assert plain.after["global_step"] > plain.before["global_step"]


def test_every_leg_trains(legs):
    for leg in legs:
        for name in ("table", "bias", "kernel"):
            assert np.any(leg.saved[name] != leg.before[name])
