"""A tower of ours: trained until the validation gets no better, measured on the test."""

import copy
import functools
import time
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.sequences_parts.data import TEST, VALIDATION
from migrate.sequences import Hstu, Retrieval, RetrievalModel, SasRec, measured, ranks

CPU = torch.device("cpu")
TOWERS = {"HSTU": Hstu, "SASRec": SasRec}


class Setting(NamedTuple):
    """How a tower is trained, with batches of about `tokens` items.

    Training ends after `patience` epochs without a better NDCG@10 of the validation.
    """

    dim: int = 64
    heads: int = 2
    layers: int = 2
    length: int = 50
    dropout: float = 0.5
    negatives: str = "uniform"
    count: int = 256
    temperature: float = 0.05
    normalise: bool = True
    rate: float = 2e-3
    tokens: int = 2000
    epochs: int = 45
    patience: int = 15


# The loss was chosen by the validation of LastFM, out of a handful of trials; the peers have the
# same size. TRIALS are what every model, a peer's too, is tried with.
SETTINGS = {"HSTU": Setting(), "SASRec": Setting()}
REFERENCE = Setting(dim=50, heads=1, dropout=0.2, count=128, rate=1e-3, epochs=101)  # of ml-1m
TRIALS = [{"rate": rate, "dropout": dropout} for rate in (1e-3, 2e-3) for dropout in (0.2, 0.5)]


class Run(NamedTuple):
    """A training and its test; seconds are of the processor, or elapsed on a GPU.

    Attributes:
        figures: what is measured on the test, for "seen" and "unseen" items.
        items_trained, seconds: of the training alone.
        items_ranked, ranking_seconds: of one ranking of the test.
    """

    figures: dict
    epochs: int
    items_trained: int
    seconds: float
    items_ranked: int
    ranking_seconds: float
    validation: float


def model_of(count, tower, setting):
    """A model over so many items."""
    table = torch.nn.Embedding(count, setting.dim)
    torch.nn.init.normal_(table.weight, std=0.02)
    made = TOWERS[tower](
        setting.dim, setting.heads, setting.layers, setting.length, dropout=setting.dropout
    )
    task = Retrieval(
        count, setting.negatives, setting.count, setting.temperature, setting.normalise
    )
    return RetrievalModel(table, made, task)


def run(histories, tower, setting, seed, device=CPU, make=model_of):
    """Trains the model that `make` makes, and measures its best epoch."""
    clock = functools.partial(_clock, device)
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    model = make(histories.count, tower, setting).to(device)
    optimizer = torch.optim.Adam(model.parameters(), setting.rate, betas=(0.9, 0.98))
    best, kept, epochs, since, trained, seconds = -1.0, None, 0, 0, 0, 0.0
    for _ in range(setting.epochs):
        begun = clock()
        for _, packed in histories.batches(VALIDATION, setting.length, setting.tokens, draw):
            optimizer.zero_grad()
            model.loss(packed.to(device)).backward()
            optimizer.step()
            trained += len(packed.items)
        seconds += clock() - begun
        found = measured(ranked(model, histories, VALIDATION, setting, True))["NDCG@10"]
        epochs, since = epochs + 1, since + 1
        if found > best:
            best, kept, since = found, copy.deepcopy(model.state_dict()), 0
        if since == setting.patience:
            break
    model.load_state_dict(kept)
    begun = clock()
    figures = {"seen": measured(ranked(model, histories, TEST, setting, True))}
    ranking_seconds = clock() - begun
    figures["unseen"] = measured(ranked(model, histories, TEST, setting, False))
    items = sum(len(packed.items) for _, packed in histories.batches(TEST, setting.length, 10**6))
    return Run(figures, epochs, trained, seconds, items, ranking_seconds, best)


def ranked(model, histories, held, setting, seen):
    """int64 [users]: the rank of each one's target, with `seen` among the items it had, too."""
    model.eval()
    found, device = [], model.tower.device
    with torch.no_grad():
        items = model.item_vectors()
        for users, packed in histories.batches(held, setting.length, 4 * setting.tokens):
            had = None
            if not seen:
                whole = histories.packed(users, held, len(histories.items))
                had = (whole.items.to(device), whole.offsets.to(device))
            asked = histories.asked(users, held).to(device)
            found.append(ranks(model.user_vectors(packed.to(device)), items, asked, had).cpu())
    model.train()
    return torch.cat(found)


def _clock(device):
    if device.type == "cpu":
        return time.process_time()
    torch.cuda.synchronize()
    return time.perf_counter()
