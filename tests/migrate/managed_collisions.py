"""A table by raw ids under DistributedModelParallel, in one process or several."""

import numpy as np
import torch
from torchrec import KeyedJaggedTensor
from torchrec.distributed.mc_embeddingbag import ManagedCollisionEmbeddingBagCollectionSharder
from torchrec.distributed.sharding_plan import row_wise

import migrate
from migrate.torchrec import build, read_model
from tests.migrate.model_parallel import distributed
from tests.migrate.raw_tables import write_tfra

RAW_IDS = np.array([4, -8, 6, 2**40, 0, -(2**62), 17, 5])
RAW_ROWS = np.arange(32, dtype=np.float32).reshape(8, 4) + 1
MODES = ("mch", "mpzch")


def convert_raw(folder):
    """FOLDER/mch and FOLDER/mpzch: the table "raw" with Adagrad's state, 10 times its rows."""
    folder.mkdir()
    slots = [("Adagrad_accumulator", [(RAW_IDS, 10 * RAW_ROWS)])]
    source = write_tfra(folder / "source", "raw", [(RAW_IDS, RAW_ROWS)], slots)
    for mode in MODES:
        with migrate.open_checkpoint(source) as checkpoint:
            plan = migrate.plan(checkpoint, ids=mode)
        plan.hash_tables[0].rows, plan.hash_tables[0].ids.buckets = 24, 2
        migrate.convert(plan, folder / mode)
    return folder


class Model(torch.nn.Module):
    """The collection, as "ebc"."""

    def __init__(self, ebc):
        super().__init__()
        self.ebc = ebc

    def forward(self, features):
        return self.ebc(features)


def managed_collisions(converted, ranks):
    """The module of the table "raw" under DistributedModelParallel, with fused Adagrad; empty."""
    config = read_model(converted)
    (table,) = config["tables"]
    table["features"], table["pooling"] = ["f"], "sum"
    table["optimizer"]["arguments"]["lr"] = 0.1
    sharder = ManagedCollisionEmbeddingBagCollectionSharder()
    return distributed(Model(build(config, fused=True)), {"raw": row_wise()}, sharder, ranks)


def vectors(model, ids):
    """What the model finds of `ids`, one a bag."""
    lengths = torch.ones(len(ids), dtype=torch.int64)
    found, _ = model.eval()(KeyedJaggedTensor(["f"], torch.from_numpy(ids), lengths=lengths))
    return found["f"].detach().numpy()
