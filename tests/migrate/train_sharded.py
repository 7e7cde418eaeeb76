"""Two gloo processes load a converted checkpoint under DMP and train on; run as a module.

    python -m tests.migrate.train_sharded
        RANK RENDEZVOUS_FILE CONVERTED SAFETENSORS STATIC RAW BATCHES.npz OUT

For each way of sharding: load, three steps; before and after them each rank writes the shards that
it owns to OUT/<sharding>.<rank>.npz, those after the steps with the prefix "later ". SAFETENSORS is
the same conversion in that format, or "" where its package is not installed. STATIC is one with a
static table: its model is built from model.json and trained table-wise, as <OUT>/static.<rank>.npz.
RAW has MODE/ with a table "raw" by ids, for the modes mch and mpzch: what a rank finds of it stands
in OUT/raw.<rank>.npz, and in "refused" the sentence for the mode that cannot be shared out.
"""

import os
import sys
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torchrec import KeyedJaggedTensor
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.sharding_plan import (
    column_wise,
    data_parallel,
    row_wise,
    table_wise,
)
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward

import migrate
from migrate.torchrec import build, embedding_bag_collection, load, load_optimizer, read_model
from semisync.common.errors import UsageError
from tests.migrate.managed_collisions import RAW_IDS, managed_collisions, vectors
from tests.migrate.model_parallel import distributed

TABLES = ["user", "item", "plain_city"]
SHARDINGS = {
    "table_wise": lambda: {t: table_wise(rank=i % 2) for i, t in enumerate(TABLES)},
    "one_rank": lambda: {t: table_wise(rank=0) for t in TABLES},
    "row_wise": lambda: {t: row_wise() for t in TABLES},
    "column_wise": lambda: {t: column_wise(ranks=[0, 1]) for t in TABLES},
    "data_parallel": lambda: {t: data_parallel() for t in TABLES},
}
# With an optimizer of torch.optim that steps after the backward pass.
DENSE = {"compute_kernel": "dense"}
UNFUSED = {
    "data_parallel": SHARDINGS["data_parallel"],
    "table_wise dense": lambda: {t: table_wise(rank=i % 2, **DENSE) for i, t in enumerate(TABLES)},
    "row_wise dense": lambda: {t: row_wise(**DENSE) for t in TABLES},
    "column_wise dense": lambda: {t: column_wise(ranks=[0, 1], **DENSE) for t in TABLES},
    "columns_on_one_rank dense": lambda: {
        t: column_wise(ranks=[i % 2] * 2, **DENSE) for i, t in enumerate(TABLES)
    },
}
SHARDINGS.update(UNFUSED)
SAFETENSORS = ["row_wise", "column_wise"]


class Model(torch.nn.Module):
    def __init__(self, ebc):
        super().__init__()
        self.ebc = ebc

    def forward(self, features):
        return self.ebc(features).values()


def sharded(converted, how):
    manifest = migrate.read_manifest(converted)
    ebc = embedding_bag_collection(manifest, {t: [t] for t in TABLES}, device=torch.device("meta"))
    if how not in UNFUSED:
        apply_optimizer_in_backward(torch.optim.Adagrad, ebc.parameters(), {"lr": 0.1, "eps": 0.0})
    return over_two(ebc, how)


def over_two(ebc, how):
    sharder = EmbeddingBagCollectionSharder()
    return distributed(Model(ebc), SHARDINGS[how](), sharder, ranks=2)


def snapshot(model, prefix, rank, optimizer=None):
    """This rank's shards: {"<prefix><table>[:accumulator]|<first row>|<first column>": values}."""
    found = {}
    weights = model.state_dict()
    states = model.fused_optimizer.state_dict().get("state", {})
    for table in TABLES:
        key = f"ebc.embedding_bags.{table}.weight"
        parts = {table: places(weights[key], rank)}
        if optimizer is not None:
            weight = dict(model.named_parameters())[key]
            state = optimizer.state.get(weight, {}).get("sum", weight)
            sizes = [one.numel() for _, one in parts[table]]
            values = state.reshape(-1)[: sum(sizes)].split(sizes)  # shard after shard
            parts[table + ":accumulator"] = [
                (at, one.reshape(shard.shape)) for (at, shard), one in zip(parts[table], values)
            ]
        elif states.get(key):  # a rank without a part of the table has no state for it
            parts[table + ":accumulator"] = places(states[key][f"{table}.momentum1"], rank)
        for name, shards in parts.items():
            for (row, column), values in shards:
                found[f"{prefix}{name}|{row}|{column}"] = values.detach().numpy().copy()
    return found


def places(tensor, rank):
    """[((first row, first column), values)] of this rank; of equal tensors those of rank 0."""
    if not hasattr(tensor, "local_shards"):
        return [((0, 0), tensor)] if rank == 0 else []
    return [(shard.metadata.shard_offsets, shard.tensor) for shard in tensor.local_shards()]


def train(model, batches, rank, optimizer=None):
    for step in range(3):
        if optimizer is not None:
            optimizer.zero_grad()
        ids = []
        for table in TABLES:
            half = np.split(batches[table][step], 2)[rank]
            ids.append(torch.from_numpy(half.reshape(-1)))
        lengths = torch.full([len(TABLES) * 4], 3, dtype=torch.int32)
        out = model(KeyedJaggedTensor(TABLES, torch.cat(ids), lengths=lengths))
        loss = 0.5 * (out**2).sum() * 2  # TorchRec divides the gradients by the two ranks
        loss.backward()
        if optimizer is not None:
            optimizer.step()


def by_raw_ids(raw, rank):
    """Vectors of this rank's ids; and why mch cannot be shared out."""
    try:
        load(managed_collisions(raw + "/mch", 2), raw + "/mch")
        refused = ""
    except UsageError as error:
        refused = str(error)
    model = managed_collisions(raw + "/mpzch", 2)
    load(model, raw + "/mpzch")
    ids = RAW_IDS[rank::2]
    return {"ids": ids, "rows": vectors(model, ids), "refused": refused}


def main():
    rank, rendezvous, converted, safetensors, static, raw, batches, out = sys.argv[1:]
    dist.init_process_group(
        "gloo",
        init_method="file://" + rendezvous,
        rank=int(rank),
        world_size=2,
        timeout=timedelta(seconds=300),
    )
    for how in SHARDINGS:
        model = sharded(converted, how)
        loaded = load(model, converted)
        assert [f"ebc.embedding_bags.{t}.weight" in loaded for t in TABLES] == [True] * 3
        optimizer = None
        if how in UNFUSED:
            optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1, eps=0.0)
            load_optimizer(optimizer, dict(model.named_parameters()), converted, model)
        found = snapshot(model, "", int(rank), optimizer)
        train(model, np.load(batches), int(rank), optimizer)
        found.update(snapshot(model, "later ", int(rank), optimizer))
        np.savez(f"{out}/{how}.{rank}.npz", **found)
    for how in SAFETENSORS if safetensors else ():
        model = sharded(converted, how)
        load(model, safetensors)
        np.savez(f"{out}/{how} safetensors.{rank}.npz", **snapshot(model, "", int(rank)))
    model = over_two(build(read_model(static), torch.device("meta"), fused=True), "table_wise")
    load(model, static)
    found = snapshot(model, "", int(rank))
    train(model, np.load(batches), int(rank))
    found.update(snapshot(model, "later ", int(rank)))
    np.savez(f"{out}/static.{rank}.npz", **found)
    np.savez(f"{out}/raw.{rank}.npz", **by_raw_ids(raw, int(rank)))
    dist.barrier()  # nobody tears its connections down while the other still uses them
    dist.destroy_process_group()
    os._exit(0)  # all is on the disk; torch's own threads now and then abort Python's teardown


if __name__ == "__main__":
    main()
