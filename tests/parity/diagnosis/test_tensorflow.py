"""Facts read from checkpoints that TensorFlow trained and wrote, and what follows from them."""

import json
import shutil

import numpy as np
import pytest

import migrate
import parity
from migrate.facts.read import read_facts
from parity.result import ROWS, SETTINGS
from tests.parity.diagnosis.log import ITEMS, TEST, TRAIN, USERS, write_log
from tests.support.require import shared


@pytest.fixture(scope="module")
def test_log():
    return write_log(TEST, 2)


@pytest.fixture(scope="module")
def converted(tensorflow_models, tmp_path_factory):
    """The baseline, converted."""
    out = tmp_path_factory.mktemp("converted") / "baseline"
    with migrate.open_checkpoint(str(tensorflow_models / "baseline")) as checkpoint:
        migrate.convert(migrate.plan(checkpoint), str(out))
    return out


def diagnosed(folder, log, name, ids=None, baseline=None):
    old, new = (np.load(folder / f"{one}.npy") for one in ("baseline", name))
    found = parity.compare(log.label, old, new)
    return parity.diagnose(
        found,
        log.label,
        old,
        new,
        ids=ids,
        baseline_model=read_facts(str(baseline or folder / "baseline")),
        candidate_model=read_facts(str(folder / name)),
    )


def bags(log):
    return np.split(log.tags, np.cumsum(log.lengths)[:-1])


def untouched(column, count):
    """bool (count,): ids that never come in the training log."""
    return np.bincount(column, minlength=count) == 0


def test_facts_are_those_of_the_training(tensorflow_models):
    facts = read_facts(str(tensorflow_models / "baseline"))
    assert (facts.optimizer, facts.slots) == ("Adagrad", 7)
    expected = {"epsilon": 0, "learning_rate": 0.05, "initial_accumulator_value": 0.1}
    assert facts.settings == expected
    assert facts.denominator > 0.1
    assert facts.combiners == {"tags": "mean"}
    assert facts.batch_norm == pytest.approx({"epsilon": 1e-3, "momentum": 0.95})
    assert facts.moving["norm"].mean == pytest.approx([3, -5, 1], rel=0.05)
    assert not facts.moving["norm"].initial


def test_cold_ids_are_those_that_the_log_lacks_in_the_order_of_the_ids(tensorflow_models):
    """The users' table is dealt to two partitions by mod."""
    log = write_log(TRAIN, 1)
    cold = read_facts(str(tensorflow_models / "baseline")).cold
    assert np.array_equal(cold["user"], untouched(log.user, USERS))
    assert np.array_equal(cold["item"], untouched(log.item, ITEMS))
    assert 0 < cold["user"].sum() < USERS


def test_a_converted_directory_tells_the_same(tensorflow_models, converted):
    ours, theirs = (read_facts(str(one)) for one in (tensorflow_models / "baseline", converted))
    assert theirs.optimizer == ours.optimizer
    assert theirs.settings == ours.settings
    assert theirs.moving["norm"].mean == pytest.approx(ours.moving["norm"].mean)
    assert {name: cold.tolist() for name, cold in theirs.cold.items()} == {
        name: cold.tolist() for name, cold in ours.cold.items()
    }


def test_what_is_edited_in_a_converted_model_counts(tensorflow_models, converted, tmp_path):
    edited = tmp_path / "edited"
    shutil.copytree(converted, edited)
    model = json.loads((edited / "model.json").read_text())
    for table in model["tables"]:
        table["optimizer"]["arguments"]["lr"] = 0.1
        table["pooling"] = "sum"
    (edited / "model.json").write_text(json.dumps(model))
    facts = read_facts(str(edited))
    assert facts.settings["learning_rate"] == 0.1
    assert set(facts.combiners.values()) == {"sum"}


def test_accumulators_that_began_anew(tensorflow_models, test_log):
    found = diagnosed(tensorflow_models, test_log, "fresh")
    assert found.verdict != "EQUIVALENT"
    suspect = found.diagnosis[0]
    assert (suspect.name, suspect.basis) == ("initial accumulators", SETTINGS)
    assert "begin at 0.1 in the baseline and at 1e-08 in the candidate" in suspect.evidence[0]
    assert "The median accumulator has grown by" in suspect.evidence[1]


def test_batch_norm_that_was_never_updated(tensorflow_models, test_log):
    for ids in (None, {"user": test_log.user, "tags": bags(test_log)}):
        found = diagnosed(tensorflow_models, test_log, "never_updated", ids)
        assert found.verdict == "NOT_EQUIVALENT"
        suspect = found.diagnosis[0]
        assert (suspect.name, suspect.basis) == ("BatchNorm statistics", SETTINGS)
        assert suspect.score > 0.9
        assert "All moving means are 0 and all moving variances 1 in the candidate's" in str(
            suspect
        )


def test_batch_norm_that_was_never_updated_shows_without_the_baselines_model(
    tensorflow_models, test_log
):
    found = diagnosed(tensorflow_models, test_log, "never_updated")
    old, new = (np.load(tensorflow_models / f"{one}.npy") for one in ("baseline", "never_updated"))
    alone = parity.diagnose(
        found,
        test_log.label,
        old,
        new,
        candidate_model=read_facts(str(tensorflow_models / "never_updated")),
    )
    assert alone.diagnosis[0].name == "BatchNorm statistics"


def test_sum_instead_of_mean(tensorflow_models, test_log):
    found = diagnosed(tensorflow_models, test_log, "summed")
    suspect = found.diagnosis[0]
    assert (suspect.name, suspect.basis, suspect.score) == ("pooling of ids", SETTINGS, 1)
    sentence = "Table tags is pooled by mean in the baseline and by sum in the candidate."
    assert suspect.evidence[0] == sentence
    seen = diagnosed(tensorflow_models, test_log, "summed", {"tags": bags(test_log)})
    assert (seen.diagnosis[0].name, seen.diagnosis[0].basis) == ("pooling of ids", ROWS)
    assert len(seen.diagnosis) == 1


def test_rows_of_ids_left_behind(tensorflow_models, test_log, converted):
    log = write_log(TRAIN, 1)
    lost = ~untouched(log.user, USERS) & (np.arange(USERS) % 3 == 1)
    for baseline in (None, converted):
        found = diagnosed(tensorflow_models, test_log, "zeroed", {"user": test_log.user}, baseline)
        suspect = found.diagnosis[0]
        assert (suspect.name, suspect.basis) == ("cold ids", ROWS)
        assert suspect.score > 0.95
        named = ", ".join(map(str, np.flatnonzero(lost)[:5]))
        assert suspect.evidence[0] == (
            f"{lost.sum():,} of the 3,000 ids of user are all zero or untrained in the candidate "
            f"alone: {named}, ..."
        )
    blind = diagnosed(tensorflow_models, test_log, "zeroed")
    assert (blind.diagnosis[0].name, blind.diagnosis[0].basis) == ("cold ids", SETTINGS)


def test_ids_that_one_known_side_never_trained_are_no_fault(tensorflow_models, test_log, tmp_path):
    """Nothing is known of the candidate's tables, so that nothing is missing there."""
    settings = tmp_path / "candidate.json"
    settings.write_text('{"optimizer": {"learning_rate": 0.1}}')
    old, new = (np.load(tensorflow_models / f"{one}.npy") for one in ("baseline", "summed"))
    found = parity.diagnose(
        parity.compare(test_log.label, old, new),
        test_log.label,
        old,
        new,
        baseline_model=read_facts(str(tensorflow_models / "baseline")),
        candidate_model=read_facts(str(settings)),
    )
    names = [one.name for one in found.diagnosis]
    assert "learning rate" in names
    assert "cold ids" not in names


def test_models_without_rows_tell_what_they_can(tensorflow_models, test_log):
    """As where the scores were counted in histograms."""
    old, new = (np.load(tensorflow_models / f"{one}.npy") for one in ("baseline", "summed"))
    found = parity.compare(test_log.label, old, new)
    models = [read_facts(str(tensorflow_models / one)) for one in ("baseline", "summed")]
    found = parity.diagnose(found, baseline_model=models[0], candidate_model=models[1])
    assert [one.name for one in found.diagnosis] == ["pooling of ids"]


def test_a_public_checkpoint():
    """Adagrad, of ../shared; its optimizer, rate and first accumulator."""
    index = shared("models", "criteo_tf_tile", "model.ckpt-40000.index")
    facts = read_facts(str(index.with_suffix("")))
    assert facts.optimizer == "Adagrad"
    assert facts.settings["initial_accumulator_value"] == 0.1
    assert facts.settings["learning_rate"] == 0.001
    assert facts.step == 40_000
