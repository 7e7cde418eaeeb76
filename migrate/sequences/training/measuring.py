"""How well a model does: ranks of next items among all items, or logits against labels, over all
processes."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import torch
import torch.distributed as dist

from migrate.sequences.batches import plan, shares
from migrate.sequences.judged import judged
from migrate.sequences.model import RankingModel, RetrievalModel
from migrate.sequences.packing import Source, ask, pack
from migrate.sequences.ranks import measured, ranks
from migrate.sequences.splits import Ends
from migrate.sequences.training.building import Model
from migrate.sequences.training.feed import Feed
from migrate.training import processes
from migrate.training.task import Epoch


class Measured(NamedTuple):
    """ends: where the event of each user stands that is asked for. tokens: events at a time."""

    source: Source
    ends: Ends
    tokens: int

    def shares(self) -> Iterator[Tuple[Ends, bool]]:
        """This process's, as often for each, and whether it counts."""
        sizes = self.ends.ends.clip(max=self.source.length)
        for batch in plan(sizes, self.tokens):
            own = shares(batch, sizes, processes.ranks())[processes.rank()]
            chosen = own if len(own) else batch[:1]
            yield Ends(self.ends.users[chosen], self.ends.ends[chosen]), len(own) > 0


def measure(model: Model, of: Measured, without_seen: bool = False) -> Dict[str, Any]:
    """The same for every process, which all call it: HR@K, NDCG@K and MRR of the event at each end;
    of a ranking AUC and log loss of its labels, and the mean of the AUCs.

    without_seen: items that the user had before are no answers.
    """
    model.eval()
    with torch.no_grad():
        return (
            _judged(model, of)
            if isinstance(model, RankingModel)
            else _ranked(model, of, without_seen)
        )


def _ranked(model: RetrievalModel, of: Measured, without_seen: bool) -> Dict[str, Any]:
    items = item_vectors(model)
    found = [torch.empty(0, dtype=torch.int64)]
    for ends, counts in of.shares():
        asked = ask(of.source, ends)
        users = model.user_vectors(asked.packed)
        if counts:
            seen = asked.seen if without_seen else None
            found.append(ranks(users, items, asked.targets, seen))
    return measured(_gathered(torch.cat(found)))


def _judged(model: RankingModel, of: Measured) -> Dict[str, Any]:
    names = model.task.labels
    found = [torch.empty(2 * len(names), 0)]
    for ends, counts in of.shares():
        candidates = Ends(ends.users, ends.ends + 1)
        packed = pack(of.source, candidates, candidates=1)
        logits = model.logits(packed)
        if counts:
            columns = [*(logits[name] for name in names), *(packed.labels[name] for name in names)]
            found.append(torch.stack([column[packed.last] for column in columns]))
    whole = _gathered(torch.cat(found, 1).T).T
    figures: Dict[str, Any] = {}
    for name, logit, label in zip(names, whole, whole[len(names) :]):
        one = judged(label, logit)
        figures.update({f"{name} AUC": one.auc, f"{name} log loss": one.loss})
    known = [value for name, value in figures.items() if name.endswith("AUC") and value is not None]
    return {**figures, "AUC": sum(known) / len(known) if known else None}


@torch.no_grad()
def item_vectors(model: RetrievalModel, at_once: int = 1 << 16) -> torch.Tensor:
    """[rows, dim], of all items; every process calls it."""
    count = model.task.items
    rows = [torch.arange(first, min(count, first + at_once)) for first in range(0, count, at_once)]
    return torch.cat([model.item_vectors(some) for some in rows])


def end_epoch(feed: Feed, figures: Dict[str, Any], metric: str, patience: int) -> Epoch:
    """Whether the epoch that has ended is the best, and whether the training ends by that."""
    value = figures[metric]
    best = value is not None and value > feed.best
    feed.best, feed.since = (value, 0) if best else (feed.best, feed.since + 1)
    feed.ended = bool(patience) and feed.since >= patience
    return Epoch({"epoch": feed.epoch, **figures}, best)


def _gathered(own: torch.Tensor) -> torch.Tensor:
    if processes.ranks() == 1:
        return own
    parts: List[Any] = [None] * processes.ranks()
    dist.all_gather_object(parts, own)
    return torch.cat(parts)
