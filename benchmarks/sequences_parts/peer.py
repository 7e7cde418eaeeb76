"""rectools' models on the same split, in an interpreter of their own; prints what it measured.

    INTERPRETER benchmarks/sequences_parts/peer.py '{"path": "Beauty.txt", "tower": "HSTU", ...}'

1. The model trains until NDCG@10 of the validation has not got better for `patience` epochs; the
   epoch that was best counts.
2. It is asked for ten items of each user, with those it had and without. An item that it did not
   meet in its training it cannot name.
"""

import copy
import json
import sys
import time
import warnings

import numpy as np
import pandas as pd
import torch
from pytorch_lightning import Callback, Trainer, seed_everything
from rectools import Columns
from rectools.dataset import Dataset
from rectools.models import HSTUModel, SASRecModel

DAY = np.datetime64("2020-01-01")


def interactions(path, held):
    """A row per action, without the last `held` of each user."""
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            user, *items = map(int, line.split())
            kept = items[: len(items) - held]
            rows += [(user, item, 1.0, DAY + place) for place, item in enumerate(kept)]
    return pd.DataFrame(
        rows, columns=[Columns.User, Columns.Item, Columns.Weight, Columns.Datetime]
    )


def last_of_each(rows):
    """bool [rows]: the last row of each user, which is the validation."""
    return ~rows.duplicated(Columns.User, keep="last")


class Best(Callback):
    """Keeps the weights of the epoch with the best NDCG@10, and the seconds of training."""

    def __init__(self, patience, clock):
        self.patience, self.clock = patience, clock
        self.best, self.since, self.weights = -1.0, 0, None
        self.seconds, self.begun, self.gains, self.epochs = 0.0, None, [], 0

    def on_train_epoch_start(self, trainer, module):
        self.begun = self.clock()

    def on_validation_epoch_start(self, trainer, module):
        if self.begun is not None:
            self.seconds += self.clock() - self.begun
            self.begun = None
        self.gains = []

    def on_validation_batch_end(self, trainer, module, outputs, batch, number, loader=0):
        logits = outputs["logits"].reshape(len(batch["y"]), -1)[:, 1:]  # the first is the padding
        target = logits.gather(1, batch["y"] - 1)
        rank = (logits >= target).sum(1).double()
        self.gains.append(torch.where(rank <= 10, 1 / torch.log2(1 + rank), 0.0))

    def on_validation_epoch_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        found = torch.cat(self.gains).mean().item()
        self.epochs, self.since = self.epochs + 1, self.since + 1
        if found > self.best:
            self.best, self.since = found, 0
            self.weights = copy.deepcopy(module.torch_model.state_dict())
        trainer.should_stop = self.since >= self.patience


def measured(found, asked):
    """The figures of recommendations, a frame, for the items that were asked for, by user."""
    hits = found[found[Columns.Item].to_numpy() == asked.loc[found[Columns.User]].to_numpy()]
    rank = hits[Columns.Rank].to_numpy()
    figures = {}
    for most in (5, 10):
        kept = rank[rank <= most]
        figures["HR@%d" % most] = len(kept) / len(asked)
        figures["NDCG@%d" % most] = float((1 / np.log2(1 + kept)).sum() / len(asked))
    return figures


def main():
    """One model."""
    given = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(given["threads"])
    clock = time.process_time if given["device"] == "cpu" else time.perf_counter
    seed_everything(given["seed"], verbose=False)
    whole = interactions(given["path"], 0)
    seen = whole[whole.duplicated(Columns.User, keep="last")].reset_index(drop=True)
    asked = whole[last_of_each(whole)].set_index(Columns.User)[Columns.Item]
    more = {"relative_time_attention": False} if given["tower"] == "HSTU" else {}
    model = {"HSTU": HSTUModel, "SASRec": SASRecModel}[given["tower"]](
        n_blocks=given["layers"],
        n_heads=given["heads"],
        n_factors=given["dim"],
        dropout_rate=given["dropout"],
        session_max_len=given["length"],
        loss="softmax",
        lr=given["rate"],
        batch_size=given["batch"],
        get_val_mask_func=last_of_each,
        get_trainer_func=lambda: Trainer(
            max_epochs=given["epochs"],
            callbacks=[Best(given["patience"], clock)],
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
            num_sanity_val_steps=0,
            accelerator={"cuda": "gpu"}.get(given["device"], given["device"]),
        ),
        recommend_torch_device=given["device"],
        **more,
    )
    dataset = Dataset.construct(seen)
    model.fit(dataset)
    best = next(one for one in model.fit_trainer.callbacks if isinstance(one, Best))
    model.torch_model.load_state_dict(best.weights)
    figures = {}
    users = asked.index.to_numpy()
    for name, filtered in (("seen", False), ("unseen", True)):
        begun = clock()
        found = model.recommend(users, dataset, k=10, filter_viewed=filtered)
        figures[name] = measured(found, asked)
        if name == "seen":
            ranking = clock() - begun
    length = given["length"]
    trained = seen.groupby(Columns.User).size().to_numpy() - 1
    print(
        json.dumps(
            {
                "figures": figures,
                "epochs": best.epochs,
                "items_trained": int(np.minimum(trained, length).sum()) * best.epochs,
                "seconds": best.seconds,
                "items_ranked": int(np.minimum(trained + 1, length).sum()),
                "ranking_seconds": ranking,
                "validation": best.best,
            }
        )
    )


if __name__ == "__main__":
    main()
