"""TensorFlow's combiners as weights of a sum, for those that TorchRec lacks.

    mean    sum(w e) / sum(w)            FBGEMM's divides by the number of ids, or not at all
    sqrtn   sum(w e) / sqrt(sum(w^2))    FBGEMM has none

Source: tensorflow/python/ops/embedding_ops.py, embedding_lookup_sparse
"""

from __future__ import annotations

from typing import Optional

import torch

COMBINERS = ("mean", "sqrtn", "sum")


def combiner_weights(
    combiner: str, lengths: torch.Tensor, weights: Optional[torch.Tensor] = None
) -> torch.Tensor:
    """Weights with which a weighted collection that pools by sum equals `combiner`.

    Args:
        combiner: "sum", "mean" or "sqrtn".
        lengths: ids of each bag, int [bags], as KeyedJaggedTensor has them.
        weights: TensorFlow's, float [ids]; None: 1 each.

    Returns:
        float [ids]. A bag whose weights sum to 0 gets 0, as in TensorFlow 2.x; 1.15 divides by it.

    Raises:
        ValueError: another combiner.

    Examples:
        >>> from migrate.torchrec import combiner_weights
        >>> combiner_weights("mean", torch.tensor([2, 0, 1]))
        tensor([0.5000, 0.5000, 1.0000])
    """
    if combiner not in COMBINERS:
        raise ValueError(f"combiner is {combiner!r}, expected one of {list(COMBINERS)}")
    bags = torch.repeat_interleave(torch.arange(len(lengths), device=lengths.device), lengths)
    if weights is None:
        weights = torch.ones(len(bags), device=lengths.device)
    if combiner == "sum":
        return weights
    squared = combiner == "sqrtn"
    totals = torch.zeros(len(lengths), dtype=weights.dtype, device=lengths.device)
    totals.index_add_(0, bags, weights * weights if squared else weights)
    divisor = (totals.sqrt() if squared else totals)[bags]
    return torch.where(divisor == 0, torch.zeros_like(weights), weights / divisor)
