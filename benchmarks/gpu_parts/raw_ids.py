"""Tables by raw id on a GPU, as `convert` writes them for TorchRec's MPZCH and NVIDIA's dynamicemb.

A hash table of TFRA with Adagrad's state is converted here, and each target loads what was written:
the rows that its look-ups give otherwise, the error of a step of Adagrad, milliseconds of a look-up
of 262,144 ids. dynamicemb has no wheel: it is built from its sources, or its row is empty.
"""

import functools
import importlib.util
import os
import statistics
import tempfile

import numpy as np
import torch
from torchrec import KeyedJaggedTensor

import migrate
from benchmarks.gpu_parts.timing import milliseconds
from migrate.torchrec import build, load, read_model

DIM, RATE, LOOKED_UP, REPEATS = 16, 0.05, 262_144, 20


def measure(device, folder, short):
    """Yields a row per target."""
    draw = np.random.default_rng(0)
    count = 20_000 if short else 2_000_000
    ids = np.unique(draw.integers(-(2**62), 2**62, count))
    rows, state = (draw.random((len(ids), DIM), np.float32) for _ in range(2))
    chosen = draw.integers(0, len(ids), LOOKED_UP)
    asked = torch.from_numpy(ids[chosen]).to(device)
    expected = torch.from_numpy(rows[chosen]).to(device)
    with tempfile.TemporaryDirectory() as scratch:
        _write(scratch, ids, rows, state)
        for mode, opened in (("mpzch", _mpzch), ("dynamicemb", _dynamicemb)):
            row = {"target": mode, "ids": len(ids), "rows that differ": None}
            row.update({"error of a step": None, "ms per look-up": None})
            if mode == "mpzch" or importlib.util.find_spec("dynamicemb"):
                looked_up, stepped = opened(_converted(scratch, mode), device, len(ids))
                found = looked_up(asked)
                row["rows that differ"] = int((found != expected).any(1).sum())
                took = milliseconds(functools.partial(looked_up, asked), device, REPEATS)
                row["ms per look-up"] = statistics.median(took)
                if stepped:
                    row["error of a step"] = _step_error(
                        stepped, looked_up, ids, rows, state, device
                    )
            yield row


def _write(folder, ids, rows, state):
    """The table and its slot as TFRA's FileSystemSaver writes them."""
    for name, values in (("user", rows), ("user_Adagrad_accumulator", state)):
        stem = os.path.join(folder, name + "_mht_1of1_rank0_size1")
        ids.tofile(stem + "-keys")
        values.tofile(stem + "-values")


def _converted(folder, mode):
    with migrate.open_checkpoint(folder) as checkpoint:
        plan = migrate.plan(checkpoint, ids=mode)
    plan.tables[0].hyperparameters["learning_rate"] = RATE
    out = os.path.join(folder, mode)
    migrate.convert(plan, out)
    return out


def _mpzch(converted, device, count):
    config = read_model(converted)
    config["tables"][0].update(features=["user"], pooling="sum")
    module = build(config, device).eval()
    load(module, converted)

    def looked_up(ids):
        with torch.no_grad():
            given = KeyedJaggedTensor(["user"], ids, lengths=torch.ones_like(ids))
            return module(given)[0]["user"]

    return looked_up, None


def _dynamicemb(converted, device, count):
    from dynamicemb import DynamicEmbPoolingMode, DynamicEmbTableOptions
    from dynamicemb.batched_dynamicemb_tables import BatchedDynamicEmbeddingTablesV2
    from fbgemm_gpu.split_embedding_configs import EmbOptimType

    options = DynamicEmbTableOptions(
        dim=DIM,
        max_capacity=1 << (4 * count).bit_length(),
        index_type=torch.int64,
        embedding_dtype=torch.float32,
        device_id=0,
        local_hbm_for_values=1 << 34,
    )
    tables = BatchedDynamicEmbeddingTablesV2(
        table_names=["user"],
        table_options=[options],
        feature_table_map=[0],
        pooling_mode=DynamicEmbPoolingMode.SUM,
        optimizer=EmbOptimType.EXACT_ADAGRAD,
    )
    tables.load(os.path.join(converted, "dynamicemb", "model.ebc"), optim=True)

    def bags(ids):
        return tables(ids, torch.arange(len(ids) + 1, device=device))

    def looked_up(ids):
        tables.eval()
        with torch.no_grad():
            return bags(ids)

    def stepped(ids, gradients):
        tables.train()
        (bags(ids) * gradients).sum().backward()

    return looked_up, stepped


def _step_error(stepped, looked_up, ids, rows, state, device):
    """The largest error after a step of Adagrad on some rows, of the largest value."""
    some = np.arange(0, len(ids), max(1, len(ids) // 50_000))
    gradients = np.random.default_rng(1).standard_normal((len(some), DIM)).astype(np.float32)
    asked = torch.from_numpy(ids[some]).to(device)
    stepped(asked, torch.from_numpy(gradients).to(device))
    wide = gradients.astype(np.float64)
    expected = rows[some] - RATE * wide / np.sqrt(state[some] + wide**2)
    return float(np.abs(looked_up(asked).cpu().numpy() - expected).max() / np.abs(expected).max())
