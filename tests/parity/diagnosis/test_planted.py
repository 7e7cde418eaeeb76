"""A fault planted in a model, its training or its scoring is the first suspect."""

import json

import numpy as np
import pytest
import torch

import migrate
import parity
from parity.diagnosis.diagnose import NEGLIGIBLE
from parity.inputs.logits import logit, sigmoid
from parity.result import CHANCE, ROWS, SETTINGS, SYMPTOM
from tests.parity.diagnosis.log import TEST
from tests.parity.diagnosis.torch_model import Model, logits, score

FEW = 150  # rows with too few positives for any verdict, even on equal ranks


def names(found):
    return [one.name for one in found.diagnosis]


def settings(folder, **optimizer):
    """Two files of settings, the baseline's and the candidate's: name=(old, new)."""
    paths = []
    for side in (0, 1):
        paths.append(folder / f"{side}.json")
        held = {name: values[side] for name, values in optimizer.items()}
        paths[-1].write_text(json.dumps({"optimizer": held}))
    facts = [migrate.read_facts(str(path)) for path in paths]
    return dict(zip(("baseline_model", "candidate_model"), facts))


def first(found, name, basis, at_least):
    """Checks the first suspect and returns its evidence as one text."""
    assert found.verdict != "EQUIVALENT"
    suspect = found.diagnosis[0]
    assert (suspect.name, suspect.basis) == (name, basis)
    assert at_least <= suspect.score <= 1
    assert list(found.diagnosis) == sorted(found.diagnosis, key=lambda one: -one.score)
    return " ".join(suspect.evidence)


def test_calibration_shift(bench):
    model = bench.copy()
    with torch.no_grad():
        model.out.bias += 0.3
    found = bench.diagnose(score(model, bench.test), FEW)
    text = first(found, "calibration", ROWS, 0.999)
    assert "The candidate's logit is 1 x the baseline's +0.3, which explains 100.0%" in text
    assert "PCOC" in text
    assert len(found.diagnosis) == 1


def test_ids_whose_rows_are_zero(bench):
    model = bench.copy()
    with torch.no_grad():
        model.user.weight[1::3] = 0
    found = bench.diagnose(score(model, bench.test))
    text = first(found, "cold ids", SYMPTOM, 0.8)
    assert "ids in user: " in text
    assert set(text.split("user: ")[1].split(", ...")[0].split(", ")) <= set(
        map(str, range(1, 3000, 3))
    )
    assert "With the baseline's scores on those rows the difference in AUC would be" in text


def test_ids_that_are_rare_are_zero(bench):
    model = bench.copy()
    with torch.no_grad():
        model.user.weight[100:] = 0
    found = bench.diagnose(score(model, bench.test))
    first(found, "cold ids", SYMPTOM, 0.5)


def test_bags_summed_instead_of_averaged(bench):
    model = Model(pooling="sum")
    model.load_state_dict(bench.model.state_dict())
    text = first(bench.diagnose(score(model, bench.test)), "pooling of ids", ROWS, 0.99)
    assert "Scores of rows with one id in tags are 0 apart" in text


def test_scores_of_a_part_shifted_by_three_rows(bench):
    scores = bench.scores.copy()
    scores[5000:9000] = np.roll(scores[5000:9000], 3)
    text = first(bench.diagnose(scores), "scores of other rows", ROWS, 0.9)
    assert "They fit when each row takes the score 3 rows later." in text


def test_scores_of_all_rows_shuffled(bench):
    shuffled = np.random.default_rng(0).permutation(bench.scores)
    text = first(bench.diagnose(shuffled), "scores of other rows", ROWS, 0.99)
    assert "rows 1 to 20,000 (100% of all)" in text
    assert "rows later" not in text and "rows earlier" not in text


def test_an_untrained_candidate_is_no_shuffle(bench):
    found = bench.diagnose(score(Model(seed=7), bench.test))
    assert found.verdict == "NOT_EQUIVALENT"
    assert "scores of other rows" not in names(found)


def test_a_file_sorted_by_score_is_no_shuffle(bench):
    """Within a block of it the scores are nearly alike, and what differs is noise."""
    order = np.argsort(bench.scores)
    labels, old = bench.test.label[order], bench.scores[order]
    new = sigmoid(logit(old) + 0.5 * np.random.default_rng(0).normal(size=TEST))
    found = parity.diagnose(parity.compare(labels, old, new), labels, old, new)
    assert found.verdict != "EQUIVALENT"
    assert "scores of other rows" not in names(found)


def test_rounded_scores(bench):
    text = first(bench.diagnose(np.round(bench.scores, 1)), "rounded scores", ROWS, 0.99)
    assert "distinct values" in text and "tied" in text


def test_sigmoid_applied_twice(bench):
    twice = 1 / (1 + np.exp(-bench.scores))
    text = first(bench.diagnose(twice, FEW), "scores on another scale", ROWS, 0.99)
    assert "a sigmoid applied once more" in text


def test_logits_instead_of_probabilities(bench):
    found = bench.diagnose(logits(bench.model, bench.test), FEW)
    assert "the sigmoid left out" in first(found, "scores on another scale", ROWS, 0.99)


def test_a_scale_that_cannot_move_the_auc_ranks_below_what_can():
    rng = np.random.default_rng(0)
    new = rng.normal(size=TEST) - 2
    labels, old = rng.random(TEST) < sigmoid(new), sigmoid(new)
    new[:1000] = rng.permutation(new[:1000])
    found = parity.diagnose(parity.compare(labels, old, new), labels, old, new)
    assert names(found) == ["scores of other rows", "scores on another scale"]


def test_the_opposite_class(bench):
    text = first(bench.diagnose(1 - bench.scores), "scores on another scale", ROWS, 0.99)
    assert "opposite class" in text


def test_a_feature_lost_from_one_day_on(bench):
    numbers = bench.test.numbers.copy()
    numbers[bench.days >= 3, 0] = 0
    candidate = score(bench.model, bench.test._replace(numbers=numbers))
    text = first(bench.diagnose(candidate), "one part of the rows", SYMPTOM, 0.9)
    assert "day 3 and later has 40.0% of the rows" in text


def test_batch_norm_statistics_left_behind(bench, tmp_path):
    """Without the models the rows show calibration at best; the facts are tested on checkpoints."""
    model = bench.copy()
    model.norm.running_mean.zero_()
    model.norm.running_var.fill_(1)
    found = bench.diagnose(score(model, bench.test))
    assert found.verdict == "NOT_EQUIVALENT"
    assert {one.basis for one in found.diagnosis} <= {SYMPTOM}


def test_another_epsilon(bench, tmp_path):
    model = bench.trained(lambda p: torch.optim.Adam(p, lr=0.005, eps=1e-3))
    files = settings(tmp_path, name=("Adam", "Adam"), epsilon=(1e-8, 1e-3))
    found = bench.diagnose(score(model, bench.test), **files)
    text = first(found, "epsilon", SETTINGS, 0.3)
    assert "Epsilon is 1e-08 in the baseline and 0.001 in the candidate." in text


def test_another_learning_rate(bench, tmp_path):
    model = bench.trained(lambda p: torch.optim.Adam(p, lr=0.0005))
    files = settings(tmp_path, learning_rate=(0.005, 0.0005), beta1=(0.9, 0.9))
    found = bench.diagnose(score(model, bench.test), **files)
    assert "0.1 times as much" in first(found, "learning rate", SETTINGS, 0.7)


def test_another_optimizer(bench, tmp_path):
    model = bench.trained(lambda p: torch.optim.Adagrad(p, lr=0.05))
    files = settings(tmp_path, name=("AdamOptimizer", "torch.optim.Adagrad"))
    first(bench.diagnose(score(model, bench.test), **files), "optimizer", SETTINGS, 0.8)


def test_accumulators_from_zero_instead_of_a_tenth(bench, tmp_path):
    """The scores of Adagrad from 0.1 stand for the baseline's here."""

    def adagrad(initial):
        return lambda p: torch.optim.Adagrad(p, 0.3, initial_accumulator_value=initial)

    bench.scores, kept = score(bench.trained(adagrad(0.1)), bench.test), bench.scores
    try:
        candidate = score(bench.trained(adagrad(0.0)), bench.test)
        files = settings(tmp_path, name=("Adagrad",) * 2, initial_accumulator_value=(0.1, 0))
        found = bench.diagnose(candidate, **files)
    finally:
        bench.scores = kept
    assert "any number of times as large" in first(found, "initial accumulators", SETTINGS, 0.9)


def test_another_seed_alone(bench):
    """The AUCs are alike, the scores are not, and no pattern in the rows explains them."""
    found = bench.diagnose(score(bench.trained(seed=1), bench.test))
    text = first(found, "training noise", CHANCE, 0.3)
    assert abs(found.delta) < found.margin
    assert "One run of each model is compared" in text


def test_the_larger_of_two_faults_comes_first(bench):
    """A third of the users' rows are zero, and all logits are shifted: little, then much."""
    for shift, order in ((0.2, ["cold ids", "calibration"]), (0.6, ["calibration", "cold ids"])):
        model = bench.copy()
        with torch.no_grad():
            model.user.weight[1::3] = 0
            model.out.bias += shift
        found = bench.diagnose(score(model, bench.test))
        assert [name for name in names(found) if name in order] == order
        assert names(found)[0] == order[0]


def test_what_is_known_to_differ_goes_before_what_is_merely_visible(bench, tmp_path):
    """The learning rate explains the calibration, and so the calibration is worth less."""
    model = bench.trained(lambda p: torch.optim.Adam(p, lr=0.0015))
    candidate = score(model, bench.test)
    alone = bench.diagnose(candidate).diagnosis[0]
    files = settings(tmp_path, learning_rate=(0.005, 0.0015))
    found = {one.name: one for one in bench.diagnose(candidate, **files).diagnosis}
    assert (alone.name, alone.basis) == ("calibration", SYMPTOM)
    weighed = alone.score * (1 - found["learning rate"].score)
    assert found["calibration"].score == pytest.approx(weighed)
    assert weighed > NEGLIGIBLE


def test_settings_that_differ_explain_nothing_where_the_rows_show_the_cause(bench, tmp_path):
    shuffled = np.random.default_rng(0).permutation(bench.scores)
    files = settings(tmp_path, learning_rate=(0.1, 0.2))
    assert names(bench.diagnose(shuffled, **files)) == ["scores of other rows"]


@pytest.mark.parametrize("rows", [TEST, FEW])
def test_no_fault_no_suspect(bench, tmp_path, rows):
    """The same model in float64: EQUIVALENT, or too few rows to say so, and no one is suspected."""
    exact = torch.sigmoid(torch.from_numpy(logits(bench.model, bench.test)).double()).numpy()
    files = settings(tmp_path, learning_rate=(0.1, 0.2))
    found = bench.diagnose(exact, rows, **files)
    assert found.verdict == ("EQUIVALENT" if rows == TEST else "INCONCLUSIVE")
    assert found.diagnosis == ()


def test_several_runs_a_side_leave_the_seed_no_suspect(bench):
    """What the seeds do is measured then."""
    runs = [bench.scores, score(bench.trained(seed=2), bench.test)]
    candidate = score(bench.trained(seed=1), bench.test)
    columns = (bench.test.label, bench.scores, candidate)
    found = parity.compare_runs(bench.test.label, runs, [candidate])
    assert found.verdict == "INCONCLUSIVE"
    assert "training noise" not in names(parity.diagnose(found, *columns))
    assert "training noise" in names(parity.diagnose(parity.compare(*columns), *columns))


def test_an_equivalent_candidate_that_is_calibrated_alike_has_no_suspects(bench):
    found = bench.diagnose(np.round(bench.scores, 3).clip(0.001, 0.999), margin=0.5)
    assert found.verdict == "EQUIVALENT"
    assert found.diagnosis == ()


def test_an_equivalent_candidate_without_a_log_loss_has_what_the_rows_show(bench):
    """Of scores that are rounded to 0 and 1 there is no log loss, and AUC cannot see that."""
    found = bench.diagnose(np.round(bench.scores, 1), margin=0.5)
    assert found.verdict == "EQUIVALENT"
    assert [(one.name, one.basis) for one in found.diagnosis] == [("rounded scores", ROWS)]
