"""Checkpoints of tables by raw ids: of any number of processes, for any other."""

import json
import shutil

import numpy as np
import pyarrow.parquet
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrate.id_tables import IdEmbeddings, IdTable, checkpoints, load, save
from migrate.torchrec import optimizers
from semisync.common.errors import BadInput, SemisyncError, UsageError
from tests.id_tables.process import run
from tests.id_tables.reference import FEATURES, assert_same, columns_of, refused, tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def saved(interpreters, folder):
    """By number of processes, what each had when it saved and after three more steps."""
    return {ranks: run(interpreters / "python", "saving", folder, ranks) for ranks in (1, 2, 3)}


def joined(parts):
    """(columns by id, counts by id, step, updates) of all processes together."""
    columns, counts, steps, updates = zip(*parts)
    assert len(set(steps)) == len(set(updates)) == 1
    return (
        {one: value for part in columns for one, value in part.items()},
        {one: value for part in counts for one, value in part.items()},
        steps[0],
        updates[0],
    )


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 3))])
def test_any_number_of_processes_goes_on_from_any_other(interpreters, folder, saved, ranks):
    found = run(interpreters / "python", "loading", folder, ranks)
    for number, parts in saved.items():
        wanted = joined([before for before, _ in parts])
        got = joined([part[number][0] for part in found])
        assert_same(got[0], wanted[0], 0)
        assert got[1:] == wanted[1:] and got[2] == 5
        after, finally_ = joined([part[number][1] for part in found]), joined([e for _, e in parts])
        assert_same(after[0], finally_[0], 0 if number == ranks else 1e-5)
        assert after[1:] == finally_[1:]


@pytest.mark.long
def test_what_fails_in_one_process_fails_in_all(interpreters, folder, saved):
    shutil.copytree(folder / "saved-2", folder / "broken")
    part = folder / "broken" / "people.1-of-2.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    others, failed = run(interpreters / "python", "failing", folder, 2)
    assert [kind for kind, _ in others] == ["SemisyncError", "SemisyncError"]
    assert all(why.startswith("1 of 2 processes failed") for _, why in others)
    (first, reason), second = failed
    assert first == "Broken" and str(part) in reason
    assert second == ("MemoryError", "no room")


def trained(**options):
    """Two tables, one under a name that is not a file's."""
    table = IdEmbeddings(
        [IdTable("a/b", 3, ["f"], pooling=None), IdTable("c", 2, ["g"], pooling=None)], **options
    )
    table.optimizer(optimizers.Ftrl, lr=0.1)
    return table


@pytest.fixture
def whole(tmp_path):
    table = trained()
    optimizer = table.stores["c"].optimizer
    ids = torch.arange(100)
    for _ in range(2):
        sum(one.square().sum() for one in table({"f": ids, "g": ids[:7]}).values()).backward()
        optimizer.step()
    save(table, str(tmp_path / "whole"))
    return table, tmp_path / "whole"


def test_blocks_are_read_one_by_one_to_the_same_rows(whole, tmp_path, monkeypatch):
    table, _ = whole
    monkeypatch.setattr(checkpoints, "BLOCK_BYTES", 600)
    save(table, str(tmp_path / "blocks"))
    file = pyarrow.parquet.ParquetFile(tmp_path / "blocks" / "a%2Fb.0-of-1.parquet")
    assert file.metadata.num_row_groups == 10
    other = trained(seed=5)
    load(other, str(tmp_path / "blocks"))
    for name in ("a/b", "c"):
        assert_same(columns_of(other, name), columns_of(table, name), 0)
    new = {"f": torch.tensor([10**15]), "g": torch.tensor([-1])}
    assert all(torch.equal(one, table(new)[name]) for name, one in other(new).items())


def test_it_is_plain_parquet(whole):
    table, folder = whole
    read = pyarrow.parquet.read_table(folder / "c.0-of-1.parquet")
    assert read.column_names == ["id", "count", "last_step", "value", "accum", "linear"]
    assert read["id"].to_pylist() == list(range(7)) and read["count"].to_pylist() == [2] * 7
    rows = columns_of(table, "c")
    assert np.array_equal(
        read["linear"].to_pylist(), [rows[one]["linear"].tolist() for one in range(7)]
    )


def test_what_does_not_fit_is_refused(whole, tmp_path):
    table, folder = whole
    assert "has a checkpoint" in refused(UsageError, lambda: save(table, str(folder)))
    assert "not a whole checkpoint" in refused(BadInput, lambda: load(table, str(tmp_path)))
    assert "not ['people']" in refused(UsageError, lambda: load(tables(), str(folder)))
    wider = IdEmbeddings([IdTable("a/b", 4, ["f"]), IdTable("c", 2, ["g"])])
    assert "dim 3, not 4" in refused(UsageError, lambda: load(wider, str(folder)))
    other = IdEmbeddings([IdTable("a/b", 3, ["f"], pooling=None), IdTable("c", 2, ["g"])])
    load(other, str(folder))  # vectors alone
    late = refused(UsageError, lambda: other.optimizer(optimizers.Ftrl, lr=0.1))
    assert "['accum', 'linear']" in late and "first" in late
    again = IdEmbeddings([IdTable("a/b", 3, ["f"]), IdTable("c", 2, ["g"])])
    again.optimizer(optimizers.Adagrad, lr=0.1)
    assert "slots" in refused(UsageError, lambda: load(again, str(folder)))
    description = json.loads((folder / "tables.json").read_text())
    description["tables"]["c"]["rows"] = [8]
    (folder / "tables.json").write_text(json.dumps(description))
    assert "has 7 rows" in refused(BadInput, lambda: load(table, str(folder)))


def test_a_failed_save_leaves_no_checkpoint(whole, tmp_path):
    table, _ = whole
    (tmp_path / "taken").write_text("a file")
    assert "not written" in refused(SemisyncError, lambda: save(table, str(tmp_path / "taken")))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["tables.json", "a%2Fb.0-of-1.parquet"]),
    st.integers(0, 9999),
    st.integers(1, 255),
    st.booleans(),
)
def test_damage_is_refused_or_without_effect(whole, name, where, change, cut):
    table, folder = whole
    before, content = columns_of(table, "a/b"), (folder / name).read_bytes()
    damaged, at = bytearray(content), where * len(content) // 10_000
    damaged[at] ^= change
    (folder / name).write_bytes(damaged[:at] if cut else damaged)
    other = trained()
    try:
        load(other, str(folder))
    except SemisyncError:
        return
    finally:
        (folder / name).write_bytes(content)
    found = columns_of(other, "a/b")
    if name != "tables.json":  # which has no checksum
        assert_same(found, before, 0)


def test_an_evicting_table_is_loaded_with_what_decides(whole):
    table, folder = whole
    assert FEATURES and table.stores["c"].versions[:7].tolist() == [2] * 7
    other = trained()
    load(other, str(folder))
    assert other.stores["c"].versions[:7].tolist() == [2] * 7 and other.stores["c"].step == 2
