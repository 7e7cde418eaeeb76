import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from semisync.common.errors import UsageError
from semisync.demo.data.click_log import split
from semisync.demo.data.generator import DAYS, generate


@pytest.fixture(scope="module")
def log():
    return generate(60_000, seed=1)


def test_the_shapes_are_those_of_a_click_log(log):
    assert log.ids.shape == (60_000, 11) and log.ids.dtype == np.int64
    assert log.labels.dtype == np.float32 and set(log.labels.tolist()) == {0, 1}
    assert log.days.dtype == np.int32 and (np.diff(log.days) >= 0).all()
    assert set(log.days.tolist()) == set(range(DAYS))
    assert log.numeric == 3 and len(log.fields) == 11
    assert (log.ids < 0).mean() == pytest.approx(0.5, abs=0.2)


def test_the_seed_decides_everything(log):
    again, other = generate(60_000, seed=1), generate(60_000, seed=2)
    for column in ("ids", "labels", "days", "truth"):
        np.testing.assert_array_equal(getattr(log, column), getattr(again, column))
        assert not np.array_equal(getattr(log, column), getattr(other, column))


def test_clicks_happen_as_often_as_the_truth_says(log):
    assert log.labels.mean() == pytest.approx(0.15, abs=0.01)
    order = np.argsort(log.truth)
    for rows in np.array_split(order, 10):
        p = log.truth[rows]
        error = np.sqrt((p * (1 - p)).sum()) / len(rows)
        assert log.labels[rows].mean() == pytest.approx(p.mean(), abs=5 * error)


@pytest.mark.parametrize("seed", range(4))
def test_the_bayes_auc_is_that_of_a_real_log(seed):
    test = split(generate(60_000, seed))[1]
    assert 0.75 < test.bayes_auc < 0.85
    assert roc_auc_score(test.labels, test.truth) == pytest.approx(test.bayes_auc, abs=0.025)


def test_few_ids_carry_most_rows_and_most_ids_are_rare(log):
    for field, distinct in (("user", 15_000), ("item", 5_000)):
        counts = np.unique(log.ids[:, log.fields.index(field)], return_counts=True)[1]
        counts = np.sort(counts)[::-1]
        assert len(counts) > distinct
        assert counts[: len(counts) // 20].sum() > 0.3 * log.rows
        assert np.median(counts) <= 3


def test_new_items_appear_every_day(log):
    items = log.ids[:, log.fields.index("item")]
    seen = set(items[log.days == 0].tolist())
    for day in range(1, DAYS):
        today = set(items[log.days == day].tolist())
        assert today - seen
        seen |= today


def test_popularity_and_effects_drift(log):
    items = log.ids[:, log.fields.index("item")]
    top = [np.unique(items[log.days == day], return_counts=True) for day in (0, 9)]
    top = [set(ids[np.argsort(-counts)[:100]].tolist()) for ids, counts in top]
    assert 20 < len(top[0] & top[1]) < 90
    # Without drift an id's mean truth would differ between days by chance alone: z^2 near 1.
    squares = []
    for field in ("segment", "category", "position"):
        ids = log.ids[:, log.fields.index(field)]
        for value in set(ids.tolist()):
            first, last = (log.truth[(ids == value) & (log.days == day)] for day in (0, 9))
            error = first.var() / len(first) + last.var() / len(last)
            squares.append((first.mean() - last.mean()) ** 2 / error)
    assert np.mean(squares) > 2


def test_a_linear_model_learns_much_and_leaves_the_pairs(log):
    train, test = split(log)

    def hashed(part):
        columns = (part.ids.view(np.uint64) % np.uint64(2**16)).astype(np.int64).ravel()
        starts = np.arange(0, len(columns) + 1, part.ids.shape[1])
        return csr_matrix((np.ones(len(columns)), columns, starts), (part.rows, 2**16))

    model = LogisticRegression(C=0.1, max_iter=200, tol=1e-2).fit(hashed(train), train.labels)
    reached = roc_auc_score(test.labels, model.decision_function(hashed(test)))
    assert 0.68 < reached < test.bayes_auc - 0.02


def test_nonsense_is_refused():
    with pytest.raises(UsageError, match="rows is 10"):
        generate(10)
    with pytest.raises(UsageError, match="seed is -1"):
        generate(1000, seed=-1)
