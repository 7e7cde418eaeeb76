"""Several processes, each with a part of the batch, take the steps of one with all of it."""

import numpy as np
import pytest
import torch

from tests.id_tables.process import BAGS, IDS, batches, run, share
from tests.id_tables.reference import DIM, FEATURES, OPTIMIZERS, Declared, assert_same, loss_of
from tests.id_tables.reference import tables as a_table


@pytest.fixture(scope="module")
def found(interpreters, tmp_path_factory):
    """found(scenario, ranks): what each process found."""
    folder = tmp_path_factory.mktemp("processes")
    return lambda scenario, ranks: run(interpreters / "python", scenario, folder, ranks)


def joined(parts):
    """The rows of all processes; no id is in two."""
    together = {one: columns for part in parts for one, columns in part.items()}
    assert len(together) == sum(map(len, parts))
    return together


def declared(kind, settings, divisor=1.0):
    """The rows after the steps on the whole batches."""
    table = Declared(IDS.tolist(), kind, settings)
    for bags, targets in batches():
        batch, own = share(bags, targets, range(BAGS))
        if divisor == 1:
            table.step(batch, own)
            continue
        rows = {
            name: table.bags(torch.tensor([table.row[i] for i in ids.tolist()]).long(), offsets)
            for name, (ids, offsets) in batch.items()
        }
        table.met.update(one for ids, _ in batch.values() for one in ids.tolist())
        table.optimizer.zero_grad()
        (loss_of(rows, own) / divisor).backward()
        table.optimizer.step()
    return table.columns()


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long), 3])
@pytest.mark.few(1)
def test_every_optimizer_takes_the_steps_of_the_union_of_unequal_shares(found, ranks):
    parts = found("steps", ranks)
    for kind, settings in OPTIMIZERS.items():
        assert_same(joined([part[kind] for part in parts]), declared(kind, settings), 1e-4)
    if ranks == 3:
        assert min(len(part["Adam"]) for part in parts) > 2


@pytest.mark.long
@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.long), 3])
def test_a_mean_over_equal_shares_is_the_mean_over_the_batch(found, ranks):
    wanted = declared("Adagrad", {"lr": 0.1}, divisor=len(FEATURES) * BAGS * DIM)
    assert_same(joined(found("means", ranks)), wanted)


@pytest.mark.long
def test_a_process_without_a_gradient_of_its_ids_takes_part(found):
    rows = joined(found("without_backward", 2))
    met = {one for bags, _ in batches() for own in bags.values() for bag in own for one in bag}
    assert set(rows) == met
    assert all(torch.isfinite(columns["value"]).all() for columns in rows.values())


@pytest.mark.long
def test_a_frozen_look_up_finds_the_rows_of_all_processes(found):
    (vectors, unknown, rows), (none, *same) = found("frozen", 2)
    initial = a_table(pooling=None, unknown="initial").eval()
    wanted = initial(dict.fromkeys(FEATURES, torch.from_numpy(IDS[10:30])))["user"]
    wanted[10:] = 0
    assert torch.equal(vectors, wanted) and none.shape == (0, DIM)
    assert [unknown, rows] == same == [{"people": 0.5}, {"people": 20}]


@pytest.mark.long
def test_each_process_evicts_the_rarest_beyond_its_share(found):
    (counts, first), (_, second) = found("evicting", 2)
    assert max(counts) <= 12 and counts[0] == 10
    assert len(first) <= 6 and len(second) <= 6
    assert set(IDS[:6].tolist()) <= {*first, *second}


@pytest.mark.few(1)
def test_tables_that_differ_between_processes_are_refused(found):
    one, other = found("differing", 2)
    assert one == other and "process 0 has" in one and "dim=2" in one and "dim=3" in one


def test_ids_are_spread_evenly_however_they_are_made(monkeypatch):
    from migrate.id_tables.exchange import Processes

    processes = Processes()
    processes.ranks = 7
    for ids in (np.arange(70_000), np.arange(-35_000, 35_000) * 7, np.arange(70_000) << 40):
        counts = np.bincount(processes.owners(ids), minlength=7)
        assert counts.sum() == 70_000 and np.abs(counts - 10_000).max() < 500
