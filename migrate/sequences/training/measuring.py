"""How well a model does: ranks of next items among all items, or logits against labels, over all
processes."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import numpy
import torch
import torch.distributed as dist

from migrate.sequences.batches import plan, shares
from migrate.sequences.judged import judged
from migrate.sequences.model import RankingModel, RetrievalModel
from migrate.sequences.packing import Asking, Source, ask, in_pieces, pack_pieces, places
from migrate.sequences.ranks import measured, ranks
from migrate.sequences.splits import Ends
from migrate.sequences.training.building import Model
from migrate.training.distributed import processes


class Measured(NamedTuple):
    """The measured events.

    Attributes:
        ends: the position of the event that is asked for, of each user.
        tokens: events at a time.
        asking: when a next item is asked for; the events of a ranking are at their own time.
    """

    source: Source
    ends: Ends
    tokens: int
    asking: Asking = Asking()

    def shares(self, sizes: numpy.ndarray) -> Iterator[Tuple[Ends, bool]]:
        """Gives this process's share of each batch, and whether it counts.

        Every process gets as many, for the calls that all make together.

        Args:
            sizes: the number of events of each of `ends`.
        """
        for batch in plan(sizes.clip(max=self.source.length), self.tokens):
            own = shares(batch, sizes, processes.ranks())[processes.rank()]
            yield self.ends.some(own if len(own) else batch[:1]), len(own) > 0


def measure(model: Model, of: Measured, without_seen: bool = False) -> Dict[str, Any]:
    """The measures of a model, the same in every process; all call it.

    They are HR@K, NDCG@K and MRR of the event at each end; of a ranking AUC, GAUC by user and log
    loss of the labels of all events that are asked for, and the mean of the AUCs.

    Args:
        without_seen: items that the user had before are not answers.
    """
    model.eval()
    with torch.no_grad():
        return (
            _judged(model, of)
            if isinstance(model, RankingModel)
            else _ranked(model, of, without_seen)
        )


def _ranked(model: RetrievalModel, of: Measured, without_seen: bool) -> Dict[str, Any]:
    items, device = item_vectors(model), model.tower.device
    found = [torch.empty(0, dtype=torch.int64)]
    for ends, counts in of.shares(of.ends.ends):
        asked = ask(of.source, ends, of.asking).to(device)
        users = model.user_vectors(asked.packed)
        if counts:
            seen = asked.seen if without_seen else None
            found.append(ranks(users, items, asked.targets, seen).cpu())
    return measured(_gathered(torch.cat(found)))


def _judged(model: RankingModel, of: Measured) -> Dict[str, Any]:
    found, histories = logits(model, of), of.source.histories
    user = torch.from_numpy(numpy.searchsorted(histories.offsets, found.events, "right"))
    figures: Dict[str, Any] = {}
    for name, logit in found.logits.items():
        label = torch.from_numpy(histories.labels[name][found.events])
        one = judged(label, torch.from_numpy(logit), user)
        figures[f"{name} AUC"], figures[f"{name} GAUC"] = one.auc, one.gauc
        figures[f"{name} log loss"] = one.loss
    known = [value for name, value in figures.items() if name.endswith(" AUC")]
    known = [value for value in known if value is not None]
    return {**figures, "AUC": sum(known) / len(known) if known else None}


class Logits(NamedTuple):
    """Logits by label, float32 [n], of `events`, positions in the histories, int64 [n]."""

    events: numpy.ndarray
    logits: Dict[str, numpy.ndarray]


@torch.no_grad()
def logits(model: RankingModel, of: Measured) -> Logits:
    """The logits of every event asked for, from its user's events before its moment; all processes
    call it."""
    names = model.task.labels
    events, found = [torch.empty(0, dtype=torch.int64)], [torch.empty(0, len(names))]
    # Half of a sequence, so that as much is left for the events before.
    of = of._replace(ends=in_pieces(of.source.histories, of.ends, max(1, of.source.length // 2)))
    assert of.ends.stops is not None
    for ends, counts in of.shares(of.ends.stops):
        assert ends.stops is not None
        packed = pack_pieces(of.source, ends)
        scored = model.logits(packed.to(model.tower.device))
        if counts:
            own, offsets = places(of.source.histories, ends.users, ends.ends, ends.stops)
            back = packed.offsets[1:] - torch.from_numpy(offsets[1:])  # the last ones of each
            at = torch.arange(len(own)) + back.repeat_interleave(
                torch.from_numpy(numpy.diff(offsets))
            )
            events.append(torch.from_numpy(own))
            found.append(torch.stack([scored[name].cpu()[at] for name in names], 1))
    values = _gathered(torch.cat(found)).numpy()
    return Logits(_gathered(torch.cat(events)).numpy(), dict(zip(names, values.T)))


@torch.no_grad()
def item_vectors(model: RetrievalModel, at_once: int = 1 << 16) -> torch.Tensor:
    """The vectors of all items, [rows, dim]; every process calls it."""
    rows = torch.arange(model.task.items, device=model.tower.device)
    return torch.cat([model.item_vectors(some) for some in rows.split(at_once)])


def _gathered(own: torch.Tensor) -> torch.Tensor:
    if processes.ranks() == 1:
        return own
    parts: List[Any] = [None] * processes.ranks()
    dist.all_gather_object(parts, own)
    return torch.cat(parts)
