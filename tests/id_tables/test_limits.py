"""A table with a limit gives up the rows that its policy names; those that return start over."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from migrate.id_tables import IdEmbeddings, IdTable, Limit
from migrate.torchrec.optimizers import Adagrad
from semisync.common.errors import UsageError

_IDS = st.integers(-6, 9)
_BATCHES = st.lists(st.lists(_IDS, max_size=8), min_size=1, max_size=30)


def limited(limit):
    table = IdEmbeddings([IdTable("t", 2, ["f"], pooling=None, limit=limit)])
    return table, table.optimizer(Adagrad, lr=0.1)


def step(table, optimizer, ids):
    """Each id has a gradient of as many ones as it occurs."""
    table({"f": torch.tensor(ids, dtype=torch.int64)})["f"].sum().backward()
    optimizer.step()


class Model:
    """The same in plain Python: {id: [count, last step, sum of squared gradients]}."""

    def __init__(self, limit):
        self.limit, self.rows, self.step = limit, {}, 0

    def take(self, ids):
        self.step += 1
        for one in set(ids):
            count, _, squares = self.rows.get(one, (0, 0, 0.0))
            self.rows[one] = (count + ids.count(one), self.step, squares + ids.count(one) ** 2)
        age, most = self.limit.age, self.limit.rows
        if age is not None:
            self.rows = {o: r for o, r in self.rows.items() if self.step - r[1] <= age}
        if most is not None and len(self.rows) > most:
            recent = self.limit.policy == "least recent"
            order = sorted(
                self.rows,
                key=lambda one: (*(self.rows[one][:2][:: -1 if recent else 1]), one),
            )
            for one in order[: len(self.rows) - most]:
                del self.rows[one]


@given(
    st.sampled_from(["least recent", "least frequent"]),
    st.none() | st.integers(1, 8),
    st.none() | st.integers(1, 5),
    _BATCHES,
)
def test_it_keeps_what_the_policy_says_at_every_step(policy, rows, age, batches):
    limit = Limit(rows, policy, age)
    (table, optimizer), model = limited(limit), Model(limit)
    fresh = IdEmbeddings([IdTable("t", 2, ["f"], pooling=None, unknown="initial")]).eval()
    begun = fresh({"f": torch.arange(-6, 10)})["f"]
    seen = {}
    for ids in batches:
        step(table, optimizer, ids)
        model.take(ids)
        store = table.stores["t"]
        kept = store.ids.tolist()
        assert sorted(kept) == sorted(model.rows)
        assert store.find(np.array(kept, np.int64)).tolist() == list(range(store.count))
        gone = np.array([one for one in range(-6, 10) if one not in model.rows], np.int64)
        assert (store.find(gone) == -1).all()
        columns = store.columns()
        for row, one in enumerate(kept):
            count, last, squares = model.rows[one]
            assert (store.freqs[row], store.versions[row]) == (count, last)
            assert columns["sum"][row, 0] == pytest.approx(0.1 + squares)
            before = seen.get(one, begun[one + 6]) if count > ids.count(one) else begun[one + 6]
            if ids.count(one):
                before = before - 0.1 * ids.count(one) / (0.1 + squares) ** 0.5
            torch.testing.assert_close(columns["value"][row], before)
        seen = {one: columns["value"][row].clone() for row, one in enumerate(kept)}


def test_a_full_table_evicts_a_sixteenth_more_so_that_it_need_not_at_every_step():
    table, optimizer = limited(Limit(rows=160))
    counts = []
    for first in range(0, 400, 4):
        step(table, optimizer, list(range(first, first + 4)))
        counts.append(table.rows()["t"])
    assert counts[:40] == list(range(4, 164, 4)) and set(counts[40:]) == {150, 154, 158}
    kept = table.stores["t"].ids[: table.stores["t"].count]
    assert sorted(kept) == list(range(400 - len(kept), 400))


def test_a_row_outlives_its_age_by_a_sixteenth_at_most():
    table, optimizer = limited(Limit(age=32))
    step(table, optimizer, [5])
    for number in range(2, 40):
        step(table, optimizer, [1000])
        assert table.rows()["t"] == (2 if number < 34 else 1)  # at every second step


def test_a_limit_that_is_none_is_refused():
    for arguments in ({"rows": 0}, {"age": 0}, {"policy": "random"}):
        with pytest.raises(UsageError):
            Limit(**arguments)
