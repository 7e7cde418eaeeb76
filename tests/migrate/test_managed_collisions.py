"""Raw ids under DistributedModelParallel in one process; `test_torchrec` has two."""

import numpy as np
import pytest
import torch.distributed as dist

from migrate.torchrec import load
from tests.migrate.managed_collisions import (
    MODES,
    RAW_IDS,
    RAW_ROWS,
    convert_raw,
    managed_collisions,
    vectors,
)


@pytest.fixture
def alone(tmp_path):
    """A process group of one."""
    rendezvous = "file://" + str(tmp_path / "rendezvous")
    dist.init_process_group("gloo", init_method=rendezvous, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("mode", MODES)
def test_rows_and_their_state_are_found_under_distributed_model_parallel(alone, tmp_path, mode):
    folder = str(convert_raw(tmp_path / "raw") / mode)
    model = managed_collisions(folder, 1)
    assert not np.array_equal(vectors(model, RAW_IDS), RAW_ROWS)
    assert any(name.endswith("momentum1") for name in load(model, folder))
    assert np.array_equal(vectors(model, RAW_IDS), RAW_ROWS)
    weight = model.state_dict()["ebc._embedding_module.embedding_bags.raw.weight"]
    (state,) = model.fused_optimizer.state_dict()["state"].values()
    weight, state = (
        one.local_shards()[0].tensor.numpy() for one in (weight, state["raw.momentum1"])
    )
    there = weight.any(axis=1)
    assert there.sum() == len(RAW_IDS)
    assert np.array_equal(state[there], 10 * weight[there])
    assert (state[~there] == np.float32(0.1)).all()
