"""Rows of a target that hold no id: zero, or what a state begins with."""

import numpy as np
import pytest
import torch

import migrate
from migrate.stream import columns
from migrate.targets.reading.torch_readers import read
from migrate.verification import verify
from tests.migrate.raw_tables import write_tfra
from tests.support.conversions import make_plan, slots_of

IDS = [4, -8, 6, 2**40, 0]
ROWS = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
STATE = np.arange(20, dtype=np.float32).reshape(5, 4)


@pytest.fixture
def source(tmp_path):
    """A table with Adagrad's state, of 5 ids for 12 rows."""
    slots = [("Adagrad_accumulator", [(IDS, STATE)])]
    return write_tfra(tmp_path / "in", "t", [(IDS, ROWS)], slots)


@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch"])
@pytest.mark.parametrize("static", [None, "fp16"])
def test_rows_without_an_id_are_zero_and_their_state_begins_anew(source, tmp_path, mode, static):
    plan = make_plan(source, mode)
    plan.hash_tables[0].rows, plan.hash_tables[0].static = 12, static
    plan.hash_tables[0].ids.fill["momentum1"] = 0.25
    manifest = migrate.convert(plan, tmp_path / "out")
    (table,) = manifest.tables
    dtype = getattr(torch, table.dtype)
    weight = {table.fqn: torch.full((12, 4), 9, dtype=dtype)}
    read(str(tmp_path / "out"), weight)
    rows = weight[table.fqn].float().numpy()
    free = ~rows.any(axis=1)
    assert free.sum() == 7
    if static is None:
        state = slots_of(tmp_path / "out", "t")["t.momentum1"]
        assert (state[free] == 0.25).all() and sorted(state[~free, 0]) == sorted(STATE[:, 0])


@pytest.mark.parametrize("mode", ["rows", "mch", "mpzch"])
def test_verification_finds_what_stands_in_a_row_without_an_id(source, tmp_path, monkeypatch, mode):
    plan = make_plan(source, mode)
    plan.hash_tables[0].rows = 12
    fill = columns.filler
    monkeypatch.setattr(columns, "filler", lambda value, dtype: fill(value or 3, dtype))
    migrate.convert(plan, tmp_path / "out", verify=False)
    monkeypatch.undo()
    found = verify(source, tmp_path / "out")
    assert "has no id, but values that a free row does not have" in found.differences[0]
    assert found.differing_rows == 7
