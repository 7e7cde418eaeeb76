"""Where the item that came next stands among all items: ranks, and what is measured of them.

1. A rank counts from 1, over all items of the table. Of equal scores the target's comes last.
2. What a user has had already can be left out; the target itself stays in.
3. Users are taken in blocks, so that no more than about `memory` scores are held, or one per item.
"""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from semisync.common.errors import BadInput

_SCORES = 1 << 24


def ranks(
    users: Tensor,
    items: Tensor,
    targets: Tensor,
    seen: Optional[Tuple[Tensor, Tensor]] = None,
    scores: int = _SCORES,
) -> Tensor:
    """int64 [n]: that of each target.

    users: [n, dim]; items: [m, dim]; targets: int64 [n], rows of `items`. seen: (rows, offsets) of
    what each user has had and is left out, as `Packed` has them; None: nothing is. scores: about
    how many are held at a time.

    Raises BadInput for a score that is not finite.
    """
    found = []
    for start in range(0, len(users), max(1, scores // len(items))):
        own = slice(start, start + max(1, scores // len(items)))
        table, target = users[own] @ items.T, targets[own].unsqueeze(1)
        if not bool(torch.stack(torch.aminmax(table)).isfinite().all()):  # nan is both
            raise BadInput("a score is not finite: the training has diverged")
        ahead = table >= table.gather(1, target)
        if seen is not None:
            rows, offsets = seen
            first, last = int(offsets[start]), int(offsets[start + len(table)])
            lengths = offsets[start : start + len(table) + 1].diff()
            user = torch.arange(len(table), device=table.device).repeat_interleave(lengths)
            ahead[user, rows[first:last]] = False
            ahead.scatter_(1, target, True)
        found.append(_counted(ahead))
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64)


def _counted(there: Tensor) -> Tensor:
    """How many of each row are true; on the CPU by NumPy, in a tenth of torch's time."""
    if there.device.type != "cpu":
        return there.sum(1)
    return torch.from_numpy(numpy.count_nonzero(there.numpy(), axis=1))


def measured(ranks: Tensor, at: Sequence[int] = (5, 10)) -> Dict[str, float]:
    """HR@K: the share of ranks up to K. NDCG@K: the mean of 1 / log2(1 + rank) of these, else 0.
    MRR: the mean of 1 / rank.

    Raises BadInput without a rank.
    """
    rank = ranks.double().cpu().numpy()
    if not len(rank):
        raise BadInput("there is no rank to measure")
    found = {}
    for most in at:
        hit = rank <= most
        found[f"HR@{most}"] = float(hit.mean())
        found[f"NDCG@{most}"] = float((hit / numpy.log2(1 + rank)).mean())
    return {**found, "MRR": float((1 / rank).mean())}
