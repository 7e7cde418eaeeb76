"""Which rows are compared, and how far the scores of all rows are apart."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from migrate.behaviour import every_row
from migrate.behaviour.drawn_rows import draw_rows
from migrate.behaviour.every_row import scores_apart
from migrate.behaviour.largest import Largest
from migrate.behaviour.rows import Rows, read_rows
from migrate.behaviour.setting import Setting
from migrate.scoring.model import Input
from migrate.scoring.run import Reading
from semisync.common.errors import BadInput

ROWS = 3000
INPUTS = [
    Input("city", "city", "bytes", False),
    Input("user", "user", "int64", False),
    Input("tags", "tags", "int64", True),
    Input("price", "price", "float32", False),
]
SETTING = Setting(reading=Reading(size=100, fills=[("price", "0")]))


@pytest.fixture
def data(tmp_path):
    """Two files, whose rows are all alike but for some in the midst."""
    random = np.random.RandomState(0)
    table = {
        "city": ["Bern"] * ROWS,
        "user": random.permutation(ROWS),
        "tags": [[1, 2]] * ROWS,
        "price": random.rand(ROWS).tolist(),
    }
    table["city"][1501] = "Oslo"
    table["tags"][1502], table["tags"][1503] = [1] * 9, []
    table["price"][1504] = None
    table["price"][1505], table["price"][1506] = 7.0, -7.0
    table["tags"][1507] = [3]
    for name, part in (("a", slice(0, 1700)), ("b", slice(1700, None))):
        columns = {column: values[part] for column, values in table.items()}
        pyarrow.parquet.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    return str(tmp_path)


def test_what_is_rare_is_among_the_rows_that_are_drawn(data):
    drawn = draw_rows(data, INPUTS, SETTING, 200)
    assert drawn.total == ROWS
    assert len(set(drawn.rows.tolist())) == 200
    assert set(range(1501, 1508)) < set(drawn.rows.tolist())
    assert set(range(ROWS - 20, ROWS)) < set(drawn.rows.tolist())
    others = set(drawn.rows.tolist()) - set(range(1501, 1508)) - set(range(ROWS - 20, ROWS))
    assert 0.3 < np.mean([row < ROWS / 2 for row in others]) < 0.7
    assert "200 of 3,000 rows were drawn: each value of city, tags," in drawn.how
    assert "with the seed 0; too many values for one row each: user, price" in drawn.how
    again = draw_rows(data, INPUTS, SETTING, 200)
    assert again.rows.tolist() == drawn.rows.tolist()


@pytest.mark.parametrize("count", [ROWS, ROWS + 1])
def test_of_few_rows_all_are_taken(data, count):
    assert draw_rows(data, INPUTS, SETTING, count) == (None, ROWS, "")


@pytest.mark.parametrize("count", [1, 9])
def test_no_more_rows_are_drawn_than_were_asked_for(data, count):
    assert len(draw_rows(data, INPUTS, SETTING, count).rows) == count


def test_rows_that_were_drawn_come_together_and_keep_their_places(data):
    chosen = np.array([3, 250, 1501, 1502, 1503, 1699, 1700, 2999])
    found = list(read_rows(data, INPUTS, SETTING, None, chosen))
    files = [batch.file[-9:] for batch in found]
    assert files == ["a.parquet", "b.parquet"]
    assert [batch.numbers.tolist() for batch in found] == [
        [3, 250, 1501, 1502, 1503, 1699],
        [0, 1299],
    ]
    tags = found[0].features[2]
    assert tags.lengths.tolist() == [2, 2, 2, 9, 0, 2]
    assert tags.values.tolist() == [1, 2, 1, 2, 1, 2, *[1] * 9, 1, 2]
    assert found[0].features[0].numpy().tolist() == [b"Bern", b"Bern", b"Oslo", *[b"Bern"] * 3]


def test_rows_that_were_drawn_are_padded_as_others(data):
    (batch,) = read_rows(data, INPUTS, SETTING, 4, np.array([5, 1502]))
    assert (batch.rows, batch.size) == (2, 4)
    assert batch.features[2].lengths.tolist() == [2, 9, 9, 9]


def score_file(path, scores, keys=None, row_group_size=None):
    keys = np.arange(len(scores)) if keys is None else keys
    table = pa.table({"id": keys, "score": np.asarray(scores, "f")})
    pyarrow.parquet.write_table(table, path, row_group_size=row_group_size)
    return str(path)


def test_the_largest_difference_of_all_scores_has_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(every_row, "MOST", 2)
    theirs = np.linspace(0, 1, 150_000)
    ours = theirs.copy()
    ours[[10, 70_000, 140_000]] += [0.1, 0.3, 0.2]
    keys = np.arange(150_000)[::-1]
    files = [
        score_file(tmp_path / "theirs", theirs, keys, 40_000),
        score_file(tmp_path / "ours", ours, keys, 90_000),
    ]
    found = scores_apart(*files, "id", "score")
    assert (found.rows, found.beyond) == (150_000, 3)
    assert found.largest == pytest.approx(0.3, abs=1e-6)
    assert (found.at.row, found.at.key) == (70_001, 79_999)
    assert sorted(found.suspects.rows) == [10, 70_000]  # by their own size


def test_scores_that_are_the_same_have_no_largest_difference(tmp_path):
    path = score_file(tmp_path / "one", [0.5, 0.25])
    assert scores_apart(path, path, "id", "score")[:4] == (2, 0.0, None, 0)


@pytest.mark.parametrize("keys", [[0, 2, 1], [0, 1]])
def test_scores_of_other_rows_are_refused(tmp_path, keys):
    one = score_file(tmp_path / "one", [0.5, 0.25, 0.1])
    other = score_file(tmp_path / "other", [0.5, 0.25, 0.1][: len(keys)], keys)
    for files in ((one, other), (other, one)):
        with pytest.raises(BadInput, match="do not have the same rows in the same order"):
            scores_apart(*files, "id", "score")


def test_a_difference_is_named_by_its_own_row_and_repeated_rows_have_none():
    batch = Rows("rows", np.array([7, 9]), [], 4)  # the last one repeated up to four
    theirs, found = np.array([0.5, 0.25, 0.25, 0.25]), Largest("score", "torch")
    assert not found.take(batch, theirs, theirs + [0, 0, 1, 1])
    assert found.take(batch, theirs, theirs + [0, 0.5, 0, 0])
    told = found.told()
    assert (told.absolute, told.absolute_at.row, told.beyond) == (0.5, 10, 1)


def test_what_is_no_number_on_one_side_is_infinitely_far():
    batch = Rows("rows", np.arange(2), [], 0)
    found = Largest("score", "torch")
    assert found.take(batch, np.array([0.5, 0.25]), np.array([0.5, np.nan]))
    assert (found.told().absolute, found.told().beyond) == (np.inf, 1)
