"""A diagnosis claims no more than it knows: noise has no cause, an estimate proves nothing."""

import dataclasses

import numpy as np
import pytest

import migrate
import parity
from migrate.facts.read import read_facts
from parity.diagnosis.apart import measure
from parity.diagnosis.case import Case
from parity.diagnosis.diagnose import SUSPECTS, ranked
from parity.diagnosis.facts import Facts, is_step
from parity.inputs.logits import sigmoid
from parity.report.words.details import weight_in_words
from parity.result import CHANCE, ROWS, SETTINGS, SYMPTOM, Suspect
from tests.parity.kinds import comparison
from tests.support.require import shared


def noisy(rng, rows, size, both):
    """Labels, and probabilities that differ by noise alone: the candidate's, or of both."""
    labels = rng.random(rows) < 0.3
    signal = rng.normal(size=rows) + labels
    old = signal + (size * rng.normal(size=rows) if both else 0)
    return labels, sigmoid(old), sigmoid(signal + size * rng.normal(size=rows))


@pytest.mark.long
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("size", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("rows", [100, 1000])
def test_noise_is_rarely_taken_for_calibration(rows, size, both):
    rng = np.random.default_rng(rows)
    named = 0
    for _ in range(100):
        columns = noisy(rng, rows, size, both)
        found = parity.diagnose(parity.compare(*columns), *columns)
        named += "calibration" in [one.name for one in found.diagnosis]
    assert named <= 5


@pytest.mark.long
def test_noise_is_rarely_taken_for_a_day_or_for_ids():
    rng = np.random.default_rng(1)
    names = []
    for _ in range(60):
        columns = noisy(rng, 2000, 0.3, True)
        more = {"parts": {"day": np.arange(2000) // 143}, "day": "day"}
        more["ids"] = {"user": rng.integers(0, 100, 2000)}
        found = parity.diagnose(parity.compare(*columns), *columns, **more)
        names += [one.name for one in found.diagnosis]
    assert names.count("one part of the rows") <= 6
    assert names.count("cold ids") <= 12


@pytest.mark.parametrize("slope", [0.5, 2.0])
def test_a_stretch_beyond_the_noise_is_still_found(slope):
    rng = np.random.default_rng(2)
    old = rng.normal(size=2000)
    new = slope * old + 0.1 * rng.normal(size=2000)
    apart = measure(old, new)
    assert apart.slope == pytest.approx(slope, rel=0.05)
    assert apart.affine > 0.85


def test_noise_of_either_side_has_no_slope_of_its_own():
    """Frisch's bounds hold 1 whichever side the noise is on."""
    rng = np.random.default_rng(3)
    quiet = rng.normal(size=5000)
    loud = quiet + rng.normal(size=5000)
    for pair in ((quiet, loud), (loud, quiet)):
        assert measure(*pair).slope == pytest.approx(1, abs=0.04)
        assert measure(*pair).affine == 0


def test_only_what_the_rows_show_is_a_share_of_the_difference():
    one = Suspect("x", 1.0, ("e",), "r", ROWS)
    assert weight_in_words(one) == "100% of the difference (shown by the rows)"
    for basis in (SETTINGS, SYMPTOM):
        assert weight_in_words(one._replace(basis=basis)).startswith("could explain up to 99% of")
    assert "%" not in weight_in_words(one._replace(basis=CHANCE))


def test_settings_without_a_checkpoint_claim_the_limit_of_small_gradients():
    old = Facts("a", settings={"epsilon": 1e-7, "initial_accumulator_value": 0.1})
    new = Facts("b", settings={"epsilon": 1e-5, "initial_accumulator_value": 0.4})
    found = ranked(Case(comparison("plain"), baseline=old, candidate=new))
    by_name = {one.name: one for one in found}
    assert by_name["epsilon"].score == pytest.approx(0.99)
    assert "up to 0.01 times as large" in by_name["epsilon"].evidence[1]
    assert by_name["initial accumulators"].score == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("optimizers", "times"),
    [
        (("RMSProp", "RMSProp"), 0.1),
        (("RMSProp", "Adam"), 100),
        (("Adam", "RMSProp"), 1e-5),
        (("Adam", "Adam"), 0.01),
        (("RMSProp", None), 0.1),
        ((None, "RMSProp"), 0.1),
    ],
)
def test_each_optimizer_divides_by_its_own_sum_with_epsilon(optimizers, times):
    """TensorFlow's Adam divides by sqrt(v) + epsilon, its RMSProp by sqrt(ms + epsilon)."""
    old, new = (
        Facts("a", name, {"epsilon": epsilon}, epsilon_under_root=name == "RMSProp")
        for name, epsilon in zip(optimizers, (1e-8, 1e-6))
    )
    found = ranked(Case(comparison("plain"), baseline=old, candidate=new))
    [one] = [one for one in found if one.name == "epsilon"]
    assert one.evidence[1].endswith(f"updates are up to {times:.3g} times as large.")


@pytest.mark.parametrize(("steps", "side"), [((40_000, 0), "candidate"), ((0, 7), "baseline")])
def test_a_trained_against_an_untrained_checkpoint_is_the_first_suspect(steps, side):
    old, new = (Facts(f"model-{step}", settings={"epsilon": step}, step=step) for step in steps)
    rng = np.random.default_rng(4)
    columns = noisy(rng, 2000, 0.3, True)
    found = parity.compare(*columns)
    [one] = ranked(Case(found, baseline=old, candidate=new))
    assert one.name == "untrained model"
    assert f"The {side}'s checkpoint is of global step 0" in one.evidence[0]
    for both in ((3, 9), (0, 0), (None, 0)):
        facts = [dataclasses.replace(old, step=step) for step in both]
        named = ranked(Case(found, baseline=facts[0], candidate=facts[1]))
        assert "untrained model" not in [one.name for one in named]
    assert len(SUSPECTS) == len(set(SUSPECTS))


def test_a_converted_directory_tells_the_step_as_its_checkpoint_does(tmp_path):
    prefix = shared("models", "criteo_tf_tile", "model.ckpt-40000.index").with_suffix("")
    with migrate.open_checkpoint(str(prefix)) as checkpoint:
        migrate.convert(migrate.plan(checkpoint), str(tmp_path / "out"), verify=False)
    assert read_facts(str(tmp_path / "out")).step == 40_000


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("global_step", True),
        ("tower/global_step", True),
        ("optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE", True),
        ("not_global_step", False),
        ("global_step_size", False),
        ("filter", False),
    ],
)
def test_a_step_is_told_by_its_name(name, counts):
    assert is_step(name) is counts
