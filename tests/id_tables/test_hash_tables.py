"""Hash tables of TensorFlow's servers train on as tables by raw ids."""

import numpy as np
import pytest
import torch

import migrate
from migrate.hash_tables.hash_table import HashTable, Rows
from migrate.id_tables import IdEmbeddings, IdTable, fill, hash_tables
from migrate.torchrec import optimizers
from semisync.common.errors import BadInput, UsageError
from tests.id_tables.process import run
from tests.id_tables.reference import assert_same, columns_of, refused
from tests.migrate.raw_tables import write_monolith, write_tfra
from tests.support.require import ROOT

TFRA = ROOT / "tests" / "migrate" / "data" / "tfra" / "TFRADynamicEmbedding"
IDS = np.append(np.arange(-200, 200) * 10**15, 7)
ROWS = np.random.default_rng(0).normal(size=(len(IDS), 4)).astype(np.float32)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of a table in two parts with Adagrad's slot in another order; it lacks the last
    id and has one that the table lacks."""
    folder = tmp_path_factory.mktemp("filling")
    order = np.random.default_rng(1).permutation(len(IDS) - 1)
    slot = [(np.append(IDS[order], 99), np.append(2 + abs(ROWS[order]), np.ones((1, 4)), axis=0))]
    parts = [(IDS[:150], ROWS[:150]), (IDS[150:], ROWS[150:])]
    write_tfra(folder / "source", "user", parts, [("Adagrad_accumulator", slot)])
    return folder


def opened(source, name="user"):
    with migrate.open_checkpoint(source) as checkpoint:
        return migrate.open_hash_tables(checkpoint)[name]


WANTED = {
    int(one): {"value": torch.from_numpy(row), "sum": torch.from_numpy(2 + abs(row))}
    for one, row in zip(IDS, ROWS)
}
WANTED[7]["sum"] = torch.full((4,), 0.1)


@pytest.mark.few(1)
@pytest.mark.parametrize("ranks", [1, 2])
def test_vectors_slots_and_steps_come_to_the_processes(source, interpreters, ranks):
    parts = run(interpreters / "python", "filling", source, ranks)
    rows = {one: columns for (part, *_), _ in parts for one, columns in part.items()}
    assert_same(rows, WANTED, 0)
    for (part, counted, step, updates), said in parts:
        assert len(part) > 150 and (step, updates) == (9, 9)
        assert set(map(tuple, counted.values())) == {(0, 9)}
        assert said == {
            "rows": len(IDS),
            "begun": [],
            "without": {"sum": 1},
            "ownerless": {"sum": 1},
        }


def a_table(kind=optimizers.Adagrad, **options):
    table = IdEmbeddings([IdTable("t", 4, ["f"], pooling=None, **options)])
    if kind is not None:
        table.optimizer(kind, lr=0.1)
    return table


def test_it_comes_in_chunks(source, monkeypatch):
    monkeypatch.setattr(hash_tables, "CHUNK", 7)
    table = a_table()
    fill(table, "t", opened(source / "source"))
    assert_same(columns_of(table, "t"), WANTED, 0)


def test_room_is_made_once(source, monkeypatch):
    monkeypatch.setattr(hash_tables, "CHUNK", 7)
    table = a_table()
    fill(table, "t", opened(source / "source"))
    for column in table.stores["t"].columns().values():
        assert column.untyped_storage().nbytes() == column.nbytes == len(IDS) * 4 * column.shape[1]


def test_times_are_no_steps(tmp_path):
    base = write_monolith(tmp_path / "user", [[(1, [1.0, 2, 3, 4], 10**9), (2, [5.0, 6, 7, 8], 5)]])
    (table,) = migrate.open_hash_tables(base).values()
    filled = a_table()
    said = fill(filled, "t", table)
    assert said.begun == ["sum"] and filled.stores["t"].step == 0
    assert filled.stores["t"].versions[:2].tolist() == [0, 0]


def test_what_tfra_wrote_comes_with_adams_moments():
    user = migrate.open_hash_tables(TFRA)["deep_user"]
    table = IdEmbeddings([IdTable("t", user.value_shape[0], ["f"], pooling=None)])
    table.optimizer(optimizers.Adam, lr=0.1)
    said = fill(table, "t", user, step=3)
    wanted = {"value": user, "exp_avg": user.slots["Adam_m"], "exp_avg_sq": user.slots["Adam_v"]}
    rows = {name: dict(zip(*source.read()[:2])) for name, source in wanted.items()}
    assert said.rows == len(rows["value"]) == 7 and table.stores["t"].updates == 3
    for one, columns in columns_of(table, "t").items():
        for name, values in columns.items():
            assert np.array_equal(values, rows[name].get(one, np.zeros(len(values))))


class Kept:
    """A part in memory, as DeepRec keeps it."""

    stored = 4

    def chunks(self, rows_per_chunk):
        yield Rows(IDS[:4], ROWS[:4], np.array([1, 0, 7, 2]), np.array([30, 5, 8, 8]))


def test_counts_and_versions_come_from_deeprec():
    source = HashTable("user", "DeepRec", "int64", "float32", (4,), (Kept(),))
    table = a_table()
    said = fill(table, "t", source)
    own = table.stores["t"]
    assert (said.rows, said.begun, own.step) == (4, ["sum"], 30)
    assert own.freqs[:4].tolist() == [1, 0, 7, 2]
    assert own.versions[:4].tolist() == [30, 5, 8, 8]
    later = a_table()
    fill(later, "t", source, step=100)
    assert later.stores["t"].step == 100 and later.stores["t"].versions[:4].tolist() == [
        30,
        5,
        8,
        8,
    ]


def test_what_does_not_fit_is_refused(source, tmp_path):
    user = opened(source / "source")
    table = a_table()
    assert "no table 'x'" in refused(UsageError, lambda: fill(table, "x", user))
    fill(table, "t", user)
    assert "401 rows already" in refused(UsageError, lambda: fill(table, "t", user))
    other = a_table(optimizers.Ftrl)
    assert "['accum', 'linear']" in refused(UsageError, lambda: fill(other, "t", user))
    narrow = IdEmbeddings([IdTable("t", 3, ["f"])])
    assert "dim 3" in refused(UsageError, lambda: fill(narrow, "t", user))
    vectors = a_table(None)
    fill(vectors, "t", user)
    assert "first" in refused(UsageError, lambda: vectors.optimizer(optimizers.Adagrad, lr=0.1))
    moments = [(name, [(IDS, ROWS)]) for name in ("Adam_m", "Adam_v")]
    adam = opened(write_tfra(tmp_path / "adam", "user", [(IDS, ROWS)], moments))
    moved = a_table(optimizers.Adam)
    assert "give step" in refused(UsageError, lambda: fill(moved, "t", adam))
    twice = opened(write_tfra(tmp_path / "twice", "user", [(IDS, ROWS), (IDS[:1], ROWS[:1])]))
    assert "twice" in refused(BadInput, lambda: fill(a_table(), "t", twice))
