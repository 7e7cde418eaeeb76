"""Whether scores depend on chance or on their batch is told from rounding."""

import numpy as np
import pytest

from migrate.scoring.model import Feature
from migrate.scoring.scores import find_instability

SCORES = np.linspace(-3, 5, 90, dtype=np.float32)


def test_scores_that_differ_by_rounding_are_stable():
    random = np.random.default_rng(0)

    def rescore(start, stop):
        return SCORES[start:stop] * (1 + 1e-6 * random.normal(size=stop - start)).astype("f4")

    assert find_instability(SCORES, rescore) is None


def test_chance_is_told_before_the_batch():
    runs = iter([SCORES + 0.5, SCORES])
    found = find_instability(SCORES, lambda start, stop: next(runs)[start:stop])
    assert found.to_json() == {
        "depends_on": "chance",
        "rows": 90,
        "differ": 90,
        "largest": pytest.approx(0.5),
    }
    assert (
        "90 of the first 90 rows get another score when they are scored twice" in found.in_words()
    )


def test_what_each_run_moves_is_chance_also_where_the_second_agrees():
    """The first read what it moves after it had moved it, the second before."""
    moved = iter([0.5, 1.0, 1.5, 2.0])
    found = find_instability(SCORES + 0.5, lambda start, stop: SCORES[start:stop] + next(moved))
    assert (found.depends_on, found.differ) == ("chance", 90)


def test_a_mean_over_the_batch_is_an_effect_of_the_batch():
    def centred(start, stop):
        return SCORES[start:stop] - SCORES[start:stop].mean()

    found = find_instability(centred(0, 90), centred)
    assert (found.depends_on, found.differ) == ("batch", 90)
    first = SCORES[:30].mean() - SCORES.mean()
    assert found.largest == pytest.approx(abs(first), rel=1e-4)
    assert "scored in two batches instead of one, by up to 2.7" in found.in_words()


def test_one_row_has_no_batch():
    assert find_instability(SCORES[:1], lambda start, stop: SCORES[start:stop]) is None


def test_a_part_of_a_sparse_feature_keeps_its_values():
    feature = Feature(np.arange(6), np.array([2, 0, 3, 1]))
    part = feature.part(1, 3)
    assert (part.values.tolist(), part.lengths.tolist()) == ([2, 3, 4], [0, 3])
    assert Feature(np.arange(8).reshape(4, 2), None).part(2, 3).values.tolist() == [[4, 5]]
