"""A small log of events, and the settings of a model of it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

ITEMS, USERS = 40, 60


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def log(tmp_path_factory):
    """A row per event, in no order: a user goes on from item to item, mostly to the next one."""
    draw = np.random.default_rng(3)
    rows = []
    for user in range(USERS):
        item = draw.integers(ITEMS)
        for number in range(draw.integers(4, 15)):
            item = (item + 1 if draw.random() < 0.8 else draw.integers(ITEMS)) % ITEMS
            rows.append((-(10**12) * user, 7 * 10**10 + item, 60 * number))
    user, item, time = map(np.array, zip(*draw.permutation(rows)))
    path = tmp_path_factory.mktemp("log") / "events.parquet"
    pq.write_table(pa.table({"user": user, "item": item, "time": time}), path, row_group_size=100)
    return path


@pytest.fixture
def settings(tmp_path):
    """Writes settings as YAML; returns the file."""

    def write(more="", dropout=0.0, training=""):
        path = tmp_path / "settings.yaml"
        path.write_text(
            "data: {time: time}\n"
            f"model: {{dim: 8, heads: 2, layers: 1, length: 8, buckets: 16, dropout: {dropout}}}\n"
            "loss: {count: 32, temperature: 0.1}\n"
            f"training: {{epochs: 6, tokens: 60, rate: 2e-2, warm_up: 5{training}}}\n" + more
        )
        return path

    return write
