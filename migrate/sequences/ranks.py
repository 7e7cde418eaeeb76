"""The rank of the next item among all items, and metrics of ranks.

1. A rank counts from 1, over all items of the table. Of equal scores the target's comes last.
2. Items that a user has had can be left out; the target itself stays in.
3. Users are taken in blocks, so that no more than about 2^24 scores are held, or one user's.
"""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Sequence, Tuple

import numpy
import torch
from torch import Tensor

from semisync.common.errors import BadInput

_SCORES = 1 << 24

Seen = Optional[Tuple[Tensor, Tensor]]  # (rows, offsets), as `Packed` has them


def scored(
    users: Tensor, items: Tensor, seen: Seen = None, scores: int = _SCORES
) -> Iterator[Tuple[slice, Tensor, Seen]]:
    """Blocks of users: which they are, the scores of all items [n, m], and the places in these of
    each user's past items, (numbers of users, rows of items); None where `seen` is.

    Args:
        users: [n, dim].
        items: [m, dim].
        scores: about how many are held at a time.
    """
    at_once = max(1, scores // len(items))
    for start in range(0, len(users), at_once):
        table, places = users[start : start + at_once] @ items.T, None
        if seen is not None:
            rows, offsets = seen
            own = offsets[start : start + len(table) + 1]
            user = torch.arange(len(table), device=table.device).repeat_interleave(own.diff())
            places = user, rows[int(own[0]) : int(own[-1])]
        yield slice(start, start + len(table)), table, places


def ranks(
    users: Tensor,
    items: Tensor,
    targets: Tensor,
    seen: Seen = None,
    scores: int = _SCORES,
) -> Tensor:
    """The rank of each target among all items, from 1. Of equal scores the target's comes last.

    Args:
        users: vectors [n, dim].
        items: vectors [m, dim].
        targets: int64 [n], rows of `items`.
        seen: (rows, offsets) of each user's past items, to leave out; None: none are.
        scores: about how many are held at a time.

    Returns:
        int64 [n].

    Raises:
        BadInput: a score is not finite.

    Examples:
        >>> from migrate.sequences import ranks
        >>> ranks(torch.eye(2), torch.tensor([[3.0, 1.0], [2.0, 9.0]]), torch.tensor([1, 1]))
        tensor([2, 1])
    """
    found = []
    for own, table, places in scored(users, items, seen, scores):
        target = targets[own].unsqueeze(1)
        if not bool(torch.stack(torch.aminmax(table)).isfinite().all()):  # nan is both
            raise BadInput("a score is not finite: the training has diverged")
        # The target is ahead of itself, so that ranks begin at 1.
        ahead = table >= table.gather(1, target)
        if places is not None:
            ahead[places] = False
            ahead.scatter_(1, target, True)
        found.append(_counted(ahead))
    return torch.cat(found) if found else torch.empty(0, dtype=torch.int64)


def _counted(there: Tensor) -> Tensor:
    """The number of true values in each row; on the CPU by NumPy, in a tenth of torch's time."""
    if there.device.type != "cpu":
        return there.sum(1)
    return torch.from_numpy(numpy.count_nonzero(there.numpy(), axis=1))


def measured(ranks: Tensor, at: Sequence[int] = (5, 10)) -> Dict[str, float]:
    """The measures of recommender papers, from ranks.

    HR@K is the share of ranks up to K, NDCG@K the mean of 1 / log2(1 + rank) of these, else 0, and
    MRR the mean of 1 / rank.

    Args:
        ranks: int64 [n], from 1.
        at: the Ks.

    Returns:
        {name: value}.

    Raises:
        BadInput: there is no rank.

    Examples:
        >>> from migrate.sequences import measured
        >>> measured(torch.tensor([1, 4]), at=[2])
        {'HR@2': 0.5, 'NDCG@2': 0.5, 'MRR': 0.625}
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
